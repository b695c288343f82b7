import Glibc
import Libevent
import LoopTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct ListenerTests {
    /// Not every machine has IPv6.
    private static let places: [SocketAddress] = [
        anyPort, .ipv6(.loopback, port: 0), .unix(path: temporaryPath("accept")),
    ].filter { place in
        guard case .ipv6 = place else { return true }
        return (try? Listener.probe(place)) != nil
    }

    @Test(arguments: places)
    func `a connection is accepted and has the addresses of both ends`(address: SocketAddress) throws {
        try onLoop { loop in
            var accepted: TestSocket?
            var peer: SocketAddress?
            let listener = try Listener(address, on: loop) { connection, from in
                accepted = TestSocket(adopting: connection, on: loop)
                peer = from
                loop.stop()
            }
            #expect(listener.localAddress.port != 0)
            let client = try TestSocket(connectingTo: listener.localAddress, on: loop)
            loop.run()
            #expect(try accepted?.localAddress() == listener.localAddress)
            #expect(try client.peerAddress() == listener.localAddress)
            #expect(try client.localAddress() == peer)
            loop.stop()
        }
    }

    @Test func `an address in use is refused with that reason`() throws {
        let loop = try EventLoop()
        let first = try Listener(anyPort, on: loop) { _, _ in }
        let error = #expect(throws: ListenError.self) { try Listener(first.localAddress, on: loop) { _, _ in } }
        #expect(error?.reason == .addressInUse)
        #expect(error?.cause == SystemError(.bind, code: EADDRINUSE))
        #expect(error?.address == first.localAddress)
        #expect(throws: ListenError.self) { try Listener.probe(first.localAddress) }
    }

    @Test func `a connection to a socket that drops new ones goes to the next socket at its port`() throws {
        var accepted: [String] = []
        try onLoop { loop in
            var settings = Listener.Settings()
            settings.sharesPort = true
            let former = try Listener(anyPort, on: loop, settings: settings) { _, _ in accepted.append("former") }
            let address = former.localAddress
            let everywhere = SocketAddress.ipv4(.any, port: address.port ?? 0)
            let next = try Listener(everywhere, on: loop, settings: settings) { _, _ in
                accepted.append("next")
                loop.stop()
            }
            let early = try TestSocket(connectingTo: address, on: loop)
            former.dropNewConnections()
            // Its kernel tries again after a second, when the former socket is closed.
            let late = try TestSocket(connectingTo: address, on: loop)
            var error: SystemError?
            late.onConnected = { error = $0 }
            loop.schedule(after: 100 * millisecond) { former.leave {} }
            loop.run()
            #expect(error == nil)
            withExtendedLifetime((early, late, next)) {}
            loop.stop()
        }
        #expect(accepted == ["former", "next"])
    }

    @Test func `several loops share a port, but a probe finds the port taken`() throws {
        let loop = try EventLoop()
        var settings = Listener.Settings()
        settings.sharesPort = true
        let first = try Listener(anyPort, on: loop, settings: settings) { _, _ in }
        try withExtendedLifetime(Listener(first.localAddress, on: loop, settings: settings) { _, _ in }) {
            let error = #expect(throws: ListenError.self) { try Listener.probe(first.localAddress) }
            #expect(error?.reason == .addressInUse)
        }
        let free = first.localAddress
        first.close()
        try Listener.probe(free)
    }

    @Test(
        arguments: [
            (.ipv4(IPv4Address(192, 0, 2, 1), port: 0), .addressUnavailable),
            (.unix(path: "/nowhere/at/all.sock"), .addressUnavailable),
        ] as [(SocketAddress, ListenError.Reason)])
    func `an impossible address is refused with that reason`(address: SocketAddress, reason: ListenError.Reason) throws
    {
        let loop = try EventLoop()
        let error = #expect(throws: ListenError.self) { try Listener(address, on: loop) { _, _ in } }
        #expect(error?.reason == reason)
    }

    @Test func `a path left by a dead program is taken over, that of a living one is not`() throws {
        let loop = try EventLoop()
        let path = temporaryPath("left-over")
        let address = SocketAddress.unix(path: path)
        // A dead program leaves the path without a listener behind it.
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var memory = sockaddr_un()
        memory.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &memory.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let bound = unsafe withUnsafePointer(to: &memory) { pointer in
            unsafe bind(
                number, UnsafeRawPointer(pointer).assumingMemoryBound(to: sockaddr.self),
                socklen_t(MemoryLayout<sockaddr_un>.size))
        }
        #expect(bound == 0)
        close(number)

        let listener = try Listener(address, on: loop) { _, _ in }
        let error = #expect(throws: ListenError.self) { try Listener(address, on: loop) { _, _ in } }
        #expect(error?.reason == .addressInUse)
        listener.close()
        #expect(unsafe access(path, F_OK) != 0)
    }

    @Test(arguments: ["a file", "a link to a file", "a FIFO"])
    func `a file at the path of a Unix socket that is no socket is kept`(what: String) throws {
        let loop = try EventLoop()
        let path = temporaryPath("precious"), real = temporaryPath("real")
        defer {
            unsafe unlink(path)
            unsafe unlink(real)
        }
        switch what {
        case "a file": close(unsafe open(path, O_CREAT | O_WRONLY, 0o600))
        case "a FIFO": #expect(unsafe mkfifo(path, 0o600) == 0)
        default:
            close(unsafe open(real, O_CREAT | O_WRONLY, 0o600))
            #expect(unsafe symlink(real, path) == 0)
        }
        let error = #expect(throws: ListenError.self) { try Listener(.unix(path: path), on: loop) { _, _ in } }
        #expect(error?.reason == .notASocket)
        var status = stat()
        #expect(unsafe lstat(path, &status) == 0)
    }

    @Test func `a file that replaced a Unix socket is kept when the socket is closed`() throws {
        let loop = try EventLoop()
        let path = temporaryPath("replaced")
        let listener = try Listener(.unix(path: path), on: loop) { _, _ in }
        unsafe unlink(path)
        close(unsafe open(path, O_CREAT | O_WRONLY, 0o600))
        defer { unsafe unlink(path) }
        listener.close()
        #expect(unsafe access(path, F_OK) == 0)
    }

    @Test func `the listeners of a Unix socket share it, and the last one removes the path`() throws {
        try onLoop { loop in
            let path = temporaryPath("shared")
            var socket: ListeningSocket? = try ListeningSocket(.unix(path: path))
            var accepted = 0
            let listeners = try (0..<2).map { _ in
                try Listener(socket!, on: loop) { _, _ in
                    accepted += 1
                    loop.stop()
                }
            }
            socket = nil
            for (index, listener) in listeners.enumerated() {
                #expect(unsafe access(path, F_OK) == 0)
                let client = try TestSocket(connectingTo: .unix(path: path), on: loop)
                loop.run()
                #expect(accepted == index + 1)
                client.close()
                listener.close()
            }
            #expect(unsafe access(path, F_OK) != 0)
            loop.stop()
        }
    }

    @Test func `a connection without an owner is closed`() throws {
        try onLoop { loop in
            var number: Int32 = -1
            let listener = try Listener(anyPort, on: loop) { connection, _ in number = connection.rawValue }
            let client = try TestSocket(connectingTo: listener.localAddress, on: loop)
            client.onReadable = { _ in loop.stop() }
            client.onConnected = { _ in client.startReading() }
            loop.run()
            #expect(number >= 0)
            client.onConnected = { _ in }
            loop.stop()
        }
    }

    @Test func `a listener without descriptors waits, reports, and goes on when some are free`() async {
        // The limit is the whole process's: this needs one of its own.
        await #expect(processExitsWith: .success) {
            var reports: [SystemError] = []
            var accepted = 0
            try onLoop { loop in
                var settings = Listener.Settings()
                settings.retryDelay = 5 * millisecond
                settings.reportInterval = 3_600_000 * millisecond
                let listener = try Listener(anyPort, on: loop, settings: settings, onFailure: { reports.append($0) }) {
                    _, _ in
                    accepted += 1
                    loop.stop()
                }
                let client = try TestSocket(connectingTo: listener.localAddress, on: loop)
                var hoard: [Int32] = []
                client.onConnected = { _ in }
                var limit = rlimit()
                unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                // Room for a few more than are open now: whatever this process was born with.
                let lowest = dup(0)
                precondition(lowest >= 0)
                close(lowest)
                limit.rlim_cur = rlim_t(lowest) + 16
                unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                while true {
                    let number = dup(0)
                    if number < 0 { break }
                    hoard.append(number)
                }
                loop.schedule(after: 50 * millisecond) {
                    precondition(accepted == 0)
                    for number in hoard { close(number) }
                }
                loop.run()
                loop.stop()
                withExtendedLifetime((client, listener)) {}
            }
            // Several retries failed, but within one interval only one is told.
            precondition(accepted == 1)
            precondition(reports == [SystemError(.accept, code: EMFILE)])
        }
    }
}
