import Bytes
import Glibc
import Libevent
import LoopTesting
import Testing

@testable import Upstream

@Suite(.timeLimit(.minutes(10))) struct NameResolutionTests {
    private let server = UpstreamServer(host: "origin.test", port: 80)
    private let minute: Int64 = 60_000_000_000

    private func address(_ last: UInt8) -> SocketAddress { .ipv4(IPv4Address(192, 0, 2, last), port: 80) }

    /// What is known of one name, by a hosts file that changes, and a name server that says nothing.
    private func onLoop(
        _ body: (_ loop: EventLoop, _ resolver: Resolver, _ write: @escaping (String) -> Void) throws -> Void
    ) throws {
        let path = "/tmp/upstream-tests-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        defer { _ = unsafe unlink(path) }
        write("192.0.2.7 origin.test\n", at: path)
        var settings = Resolver.Settings()
        settings.hosts = path
        // Without a file it would be port 53 of this machine, where somebody may answer.
        let (silent, port) = try silentNameServer()
        defer { close(silent) }
        write("nameserver 127.0.0.1:\(port)\n", at: path + "-servers")
        defer { _ = unsafe unlink(path + "-servers") }
        settings.resolvConf = path + "-servers"
        settings.timeout = 200_000_000
        try LoopTesting.onLoop { loop in
            try body(loop, Resolver(on: loop, settings: settings)) { write($0, at: path) }
        }
    }

    private func write(_ text: String, at path: String) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let bytes = Array(text.utf8)
        let written = unsafe Glibc.write(file, bytes, bytes.count)
        #expect(written == bytes.count)
        close(file)
    }

    /// A socket for datagrams that nobody reads.
    private func silentNameServer() throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = unsafe withUnsafeMutableBytes(of: &address) { bytes in
            let place = unsafe bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            let code = unsafe bind(descriptor, place, length)
            return code == 0 ? unsafe getsockname(descriptor, place, &length) : code
        }
        try #require(descriptor >= 0 && code == 0)
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    @Test func `an answer from before a reset is for the request that asked, and for no later one`() throws {
        var answers: [[SocketAddress]?] = []
        try onLoop { loop, resolver, write in
            let names = NameResolution()
            names.addresses(of: server, longest: minute, on: resolver) { early in
                answers.append(try? early.get())
                write("192.0.2.8 origin.test\n")
                resolver.readFilesAgain()
                names.addresses(of: server, longest: minute, on: resolver) { late in
                    answers.append(try? late.get())
                    loop.stop()
                }
            }
            names.forget(at: loop.now)
        }
        #expect(answers == [[address(7)], [address(8)]])
    }

    @Test func `known addresses are used when no name server answers`() throws {
        var answers: [[SocketAddress]?] = []
        let told = Guarded<[NameNews]>([])
        try onLoop { loop, resolver, write in
            let names = NameResolution { _, news in told.withLock { $0.append(news) } }
            names.addresses(of: server, longest: minute, on: resolver) { first in
                answers.append(try? first.get())
                write("")
                resolver.readFilesAgain()
                names.forget(at: loop.now)
                names.addresses(of: server, longest: minute, on: resolver) { second in
                    answers.append(try? second.get())
                    // Nobody waits for another look-up.
                    var isAtOnce = false
                    names.addresses(of: server, longest: minute, on: resolver) { _ in isAtOnce = true }
                    #expect(isAtOnce)
                    loop.stop()
                }
            }
        }
        #expect(answers == [[address(7)], [address(7)]])
        #expect(told.withLock { $0 } == [.isStale(.timedOut)])
    }

    /// From then on it holds: `KnownNamesTests`.
    @Test func `an answer has the time of its arrival, not that of the question`() throws {
        var asked: Int64 = .max
        let came = Guarded<Int64?>(nil)
        try onLoop { loop, resolver, _ in
            let bound = LoopBound(resolver, on: loop)
            let operation = ResolveOperation("origin.test", port: 80, resolver: bound) { answer, now in
                let loop = bound.value.loop
                #expect(now == loop.now)
                came.withLock { $0 = now }
                loop.stop()
                return answer.map(\.addresses)
            }
            asked = loop.now
            operation.execute()
        }
        let time = try #require(came.withLock { $0 })
        #expect(time > asked)
    }
}
