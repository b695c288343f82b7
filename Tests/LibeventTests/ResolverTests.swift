import Bytes
import Glibc
import Libevent
import LoopTesting
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct ResolverTests {
    /// Resolves one name and gives the answer.
    private func answer(
        _ host: String, family: Resolver.Family = .any, _ settings: Resolver.Settings = Resolver.Settings()
    ) throws -> Resolver.Answer? {
        var result: Resolver.Answer?
        try onLoop { loop in
            let resolver = try Resolver(on: loop, settings: settings)
            resolver.resolve(host, port: 80, family: family) { answer in
                #expect(result == nil)
                result = answer
                loop.stop()
            }
            #expect(result == nil)
        }
        return result
    }

    private func file(_ name: String, _ text: String) -> String {
        let path = temporaryPath(name)
        put(text, inFileAt: path)
        return path
    }

    private func put(_ text: String, inFileAt path: String) {
        let number = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let bytes = Array(text.utf8)
        let written = unsafe write(number, bytes, bytes.count)
        #expect(written == bytes.count)
        close(number)
    }

    @Test(
        arguments: [
            ("127.0.0.1", .any, .success([.ipv4(.loopback, port: 80)])),
            ("::1", .any, .success([.ipv6(.loopback, port: 80)])),
            ("::1", .ipv4, .failure(.notFound)),
            ("localhost", .any, .success([.ipv4(.loopback, port: 80), .ipv6(.loopback, port: 80)])),
            ("LocalHost", .ipv4, .success([.ipv4(.loopback, port: 80)])),
            ("a.localhost", .ipv6, .success([.ipv6(.loopback, port: 80)])),
            ("", .any, .failure(.badName)),
        ] as [(String, Resolver.Family, Resolver.Answer)])
    func `addresses and localhost need no server`(host: String, family: Resolver.Family, expected: Resolver.Answer)
        throws
    {
        #expect(try answer(host, family: family) == expected)
    }

    @Test func `a name with a zero byte is no name`() throws {
        #expect(try answer("a\0b") == .failure(.badName))
    }

    @Test func `the hosts file is honoured`() throws {
        var settings = Resolver.Settings()
        settings.hosts = file("hosts", "192.0.2.7 origin.test other.test\n2001:db8::7 origin.test\n")
        settings.resolvConf = "/nowhere/resolv.conf"
        #expect(
            try answer("origin.test", family: .ipv4, settings) == .success([.ipv4(IPv4Address(192, 0, 2, 7), port: 80)])
        )
        #expect(
            try answer("origin.test", family: .ipv6, settings)
                == .success([.ipv6(IPv6Address(high: 0x2001_0db8 << 32, low: 7), port: 80)]))
    }

    @Test func `the hosts file is read again when told, and who asked before gets an answer`() throws {
        var settings = Resolver.Settings()
        settings.hosts = file("hosts-again", "192.0.2.7 origin.test\n")
        settings.resolvConf = "/nowhere/resolv.conf"
        var answers: [Resolver.Answer] = []
        try onLoop { loop in
            let resolver = try Resolver(on: loop, settings: settings)
            resolver.resolve("origin.test", port: 80, family: .ipv4) { answers.append($0) }
            put("192.0.2.8 origin.test\n", inFileAt: settings.hosts)
            try resolver.readFilesAgain()
            resolver.resolve("origin.test", port: 80, family: .ipv4) {
                answers.append($0)
                loop.stop()
            }
        }
        #expect(answers == [7, 8].map { .success([.ipv4(IPv4Address(192, 0, 2, $0), port: 80)]) })
    }

    @Test func `resolv.conf is read again when told, and who asked before is answered by whom it asked`() throws {
        let (old, new) = (try NameServer(), try NameServer(answering: 2))
        var settings = Resolver.Settings()
        settings.hosts = "/nowhere/hosts"
        settings.resolvConf = file("resolv-again", "nameserver 127.0.0.1:\(old.port)\n")
        var answers: [Resolver.Answer] = []
        try onLoop { loop in
            let resolver = try Resolver(on: loop, settings: settings)
            resolver.resolve("origin.test", port: 80, family: .ipv4) { before in
                answers.append(before)
                resolver.resolve("origin.test", port: 80, family: .ipv4) { after in
                    answers.append(after)
                    loop.stop()
                }
            }
            put("nameserver 127.0.0.1:\(new.port)\n", inFileAt: settings.resolvConf)
            try resolver.readFilesAgain()
        }
        #expect(answers == [1, 2].map { .success([.ipv4(IPv4Address(192, 0, 2, $0), port: 80)]) })
        old.stop()
        new.stop()
    }

    @Test func `without resolv.conf and without a server the question still ends`() throws {
        var settings = Resolver.Settings()
        settings.resolvConf = "/nowhere/resolv.conf"
        settings.hosts = "/nowhere/hosts"
        settings.timeout = 300 * millisecond
        guard case .failure = try answer("origin.test", settings) else {
            Issue.record("nobody can have answered")
            return
        }
    }

    @Test func `a server's addresses come with the port, and its refusal as not found`() throws {
        let server = try NameServer()
        var settings = Resolver.Settings()
        settings.resolvConf = file("resolv-\(server.port)", "nameserver 127.0.0.1:\(server.port)\n")
        #expect(
            try answer("origin.test", family: .ipv4, settings) == .success([.ipv4(IPv4Address(192, 0, 2, 1), port: 80)])
        )
        #expect(try answer("missing.test", family: .ipv4, settings) == .failure(.notFound))
        server.stop()
    }

    @Test func `a name that is there without an address of the wanted family is not found either`() throws {
        let server = try NameServer()
        var settings = Resolver.Settings()
        settings.resolvConf = file("nodata-\(server.port)", "nameserver 127.0.0.1:\(server.port)\n")
        #expect(try answer("origin.test", family: .ipv6, settings) == .failure(.notFound))
        #expect(try answer("empty.test", settings) == .failure(.notFound))
        server.stop()
    }

    @Test func `a server that never answers for IPv6 holds up nothing for long`() throws {
        let server = try NameServer()
        var settings = Resolver.Settings()
        settings.resolvConf = file("four-\(server.port)", "nameserver 127.0.0.1:\(server.port)\n")
        settings.timeout = 2000 * millisecond
        #expect(try answer("four-origin.test", settings) == .success([.ipv4(IPv4Address(192, 0, 2, 1), port: 80)]))
        server.stop()
    }

    @Test func `an address that is found while asking why there is none is the answer`() throws {
        let server = try NameServer()
        var settings = Resolver.Settings()
        settings.resolvConf = file("late-\(server.port)", "nameserver 127.0.0.1:\(server.port)\n")
        #expect(try answer("late-origin.test", settings) == .success([.ipv4(IPv4Address(192, 0, 2, 1), port: 80)]))
        server.stop()
    }

    @Test func `what libevent says of a server goes where messages go`() throws {
        let server = try NameServer()
        let said = Guarded<[String]>([])
        LibeventMessages.send { severity, text in
            if severity == .warning { said.withLock { $0.append(text) } }
        }
        var settings = Resolver.Settings()
        settings.resolvConf = file("refuses-\(server.port)", "nameserver 127.0.0.1:\(server.port)\n")
        settings.timeout = second
        guard case .failure = try answer("refused.test", settings) else {
            Issue.record("nobody can have answered")
            return
        }
        let (texts, place) = (said.withLock { $0 }, "127.0.0.1:\(server.port)")
        #expect(texts.contains { $0.contains(place) && $0.contains("failed") })
        server.stop()
    }

    @Test func `a silent server is given up after the settings' time`() throws {
        let server = try NameServer()
        var settings = Resolver.Settings()
        settings.resolvConf = file("silent-\(server.port)", "nameserver 127.0.0.1:\(server.port)\n")
        settings.timeout = 50 * millisecond
        #expect(try answer("silent.test", settings) == .failure(.timedOut))
        server.stop()
    }

    @Test func `a cancelled question is never answered, and its completion is released`() throws {
        final class Canary {}
        weak var canary: Canary?
        let server = try NameServer()
        var settings = Resolver.Settings()
        settings.resolvConf = file("cancel-\(server.port)", "nameserver 127.0.0.1:\(server.port)\n")
        try onLoop { loop in
            let resolver = try Resolver(on: loop, settings: settings)
            let held = Canary()
            canary = held
            var lookups: [NameLookup] = []
            for host in ["silent.test", "origin.test", "127.0.0.1"] {
                lookups.append(resolver.resolve(host, port: 80) { _ in Issue.record("\(held) was answered") })
            }
            for lookup in lookups { lookup.cancel(); lookup.cancel() }
            loop.schedule(after: 20 * millisecond) { loop.stop() }
        }
        #expect(canary == nil)
        server.stop()
    }

    @Test func `a loop that ends under a question leaves nothing behind`() throws {
        weak var gone: EventLoop?
        let server = try NameServer()
        var settings = Resolver.Settings()
        settings.resolvConf = file("ends-\(server.port)", "nameserver 127.0.0.1:\(server.port)\n")
        try onLoop { loop in
            gone = loop
            let resolver = try Resolver(on: loop, settings: settings)
            let lookup = resolver.resolve("silent.test", port: 80) { _ in Issue.record("answered") }
            loop.schedule(after: 5 * millisecond) {
                lookup.cancel()
                loop.stop()
            }
        }
        #expect(gone == nil)
        server.stop()
    }
}

/// A name server with some names: `origin.test` is 192.0.2.1 unless told otherwise, `empty.test` has no address,
/// `silent.test` gets no answer, `refused.test` is refused, `four-origin.test` has no answer for IPv6,
/// `late-origin.test` no address when it is first asked for; the rest does not exist.
final class NameServer: Sendable {
    let port: UInt16
    private let number: Int32
    private let thread: LoopThread

    /// - Parameter last: the last byte of the address of `origin.test`.
    init(answering last: UInt8 = 1) throws {
        let number = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var memory = sockaddr_in()
        memory.sin_family = sa_family_t(AF_INET)
        memory.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = unsafe withUnsafeMutableBytes(of: &memory) { bytes in
            let pointer = unsafe bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            return unsafe bind(number, pointer, length) + getsockname(number, pointer, &length)
        }
        #expect(result == 0)
        self.number = number
        port = UInt16(bigEndian: memory.sin_port)
        thread = try LoopThread(name: "nameserver") { _ in
            var wasAsked = false
            while Self.answerOne(number, last, &wasAsked) {}
        }
    }

    func stop() {
        // An empty datagram tells it to end.
        var memory = sockaddr_in()
        memory.sin_family = sa_family_t(AF_INET)
        memory.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        memory.sin_port = port.bigEndian
        _ = unsafe withUnsafeBytes(of: &memory) { bytes in
            unsafe sendto(
                number, nil, 0, 0, bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        thread.join()
        close(number)
    }

    private static func answerOne(_ number: Int32, _ last: UInt8, _ wasAsked: inout Bool) -> Bool {
        var packet = [UInt8](repeating: 0, count: 512)
        var memory = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafeMutableBytes(of: &memory) { bytes in
            let pointer = unsafe bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            let count = unsafe recvfrom(number, &packet, packet.count, 0, pointer, &length)
            guard count > 12 else { return false }
            let name = packet[12..<count].prefix { $0 != 0 }.map { $0 | 0x20 }
            // The question is the name, its zero byte, type and class.
            let end = 12 + name.count + 5
            if name.contains(Array("silent".utf8)) { return true }
            var reply = Array(packet[..<end])
            reply[2] = 0x81 // a response
            reply[3] = 0x80
            reply.replaceSubrange(4..<12, with: [0, 1, 0, 0, 0, 0, 0, 0])
            let isAddressQuery = packet[end - 3] == 1
            if name.contains(Array("four".utf8)), !isAddressQuery { return true }
            if name.contains(Array("origin".utf8)) {
                let isEarly = name.contains(Array("late".utf8)) && !wasAsked
                if isAddressQuery { wasAsked = true }
                if isAddressQuery, !isEarly {
                    reply[7] = 1
                    reply += [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, last]
                }
            } else if name.contains(Array("refused".utf8)) {
                reply[3] |= 5
            } else if !name.contains(Array("empty".utf8)) {
                reply[3] |= 3
            }
            _ = unsafe sendto(number, reply, reply.count, 0, pointer, length)
            return true
        }
    }
}
