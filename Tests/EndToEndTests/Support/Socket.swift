import Glibc
import Synchronization

/// Where something listens.
enum Endpoint: Sendable, Hashable {
    case tcp(UInt16)
    /// TLS behind TCP.
    case tls(UInt16)
    /// HTTP/2 behind TCP, for clients that write HTTP/1.1 (`FramedSocket`).
    case framed(UInt16)
    /// HTTP/2 behind TLS.
    case framedTLS(UInt16)
    case unix(String)

    var port: UInt16 {
        switch self {
        case .tcp(let port), .tls(let port), .framed(let port), .framedTLS(let port): port
        case .unix: 0
        }
    }

    /// For clients that speak HTTP/1.1 there, whatever the others speak.
    var withoutFraming: Endpoint {
        switch self {
        case .framed(let port): .tcp(port)
        case .framedTLS(let port): .tls(port)
        default: self
        }
    }
}

/// Non-blocking stream sockets; every call says in a value what happened. Connections to some endpoints, and
/// those accepted from a listener that is secured, speak TLS or HTTP/2 below these calls (`SocketLayer`).
enum Socket {
    enum Outcome: Equatable {
        case bytes(Int)
        case notNow
        case ended
        /// The connection ended, and the peer has not said so in TLS; or a stream of HTTP/2 was reset.
        case cut
        case failed(Int32)
    }

    /// A listener on 127.0.0.1, or another last byte, port chosen by the kernel unless given.
    /// - Parameter backlog: how many connections it holds that nobody has accepted yet; those that come then hear
    ///   nothing.
    static func listen(port: UInt16 = 0, last: UInt8 = 1, backlog: Int32 = 4096) throws -> (
        descriptor: Int32, port: UInt16
    ) {
        let bound = try bind(port: port, last: last)
        guard Glibc.listen(bound.descriptor, backlog) == 0 else { throw System.Failure(call: "listen", code: errno) }
        return bound
    }

    /// A listener at `path`.
    static func listen(at path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, kind, 0)
        var address = unixAddress(path)
        let code = unsafe withSocketAddress(&address) {
            unsafe Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
        guard descriptor >= 0, code == 0, Glibc.listen(descriptor, 16) == 0 else {
            throw System.Failure(call: "listen \(path)", code: errno)
        }
        return descriptor
    }

    /// A port at which nothing listens, and which the kernel gives to no connection: below its usual range for those.
    /// Each call returns another one, since some scenarios run side by side.
    static func freePort() throws -> UInt16 {
        for _ in 0..<1000 {
            // Another run of these tests on this machine begins elsewhere.
            let number = given.wrappingAdd(1, ordering: .relaxed).newValue
            let port = UInt16(12_000 + (Int(getpid()) * 97 + number) % 20_000)
            guard let bound = try? listen(port: port) else { continue }
            close(bound.descriptor)
            return port
        }
        throw System.Failure(call: "listen", code: EADDRINUSE)
    }
    private static let given = Atomic(0)

    /// A port that nobody else gets and that refuses connections: bound, never listening.
    static func bind(port: UInt16 = 0, last: UInt8 = 1) throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw System.Failure(call: "socket", code: errno) }
        set(descriptor, SO_REUSEADDR, 1)
        var address = loopback(port, last: last)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = unsafe withSocketAddress(&address) { unsafe Glibc.bind(descriptor, $0, length) }
        guard code == 0 else {
            let failure = System.Failure(call: "bind \(port)", code: errno)
            close(descriptor)
            throw failure
        }
        _ = unsafe withSocketAddress(&address) { unsafe getsockname(descriptor, $0, &length) }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// The next connection, or nil when none is waiting.
    /// - Parameter isSecured: whether the other side speaks TLS.
    static func accept(_ listener: Int32, isSecured: Bool = false) -> Int32? {
        let descriptor = Spawn.betweenStarts {
            let descriptor = Glibc.accept(listener, nil, nil)
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            return descriptor
        }
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        setNoDelay(descriptor)
        if isSecured { SocketLayers.add(SecuredSocket(descriptor, as: .server), to: descriptor) }
        return descriptor
    }

    /// Begins to connect; the socket turns writable when it is connected or has failed (`failure(of:)`).
    /// - Parameters:
    ///   - last: the last byte of the address, 127.0.0.1 by default.
    ///   - name: the path that a Unix socket is bound to; `nil` leaves it unnamed.
    static func connect(
        to endpoint: Endpoint, last: UInt8 = 1, receiveBuffer: Int32? = nil, as name: String? = nil
    ) throws -> Int32 {
        let descriptor: Int32
        let code: Int32
        switch endpoint {
        case .tcp(let port), .tls(let port), .framed(let port), .framedTLS(let port):
            descriptor = socket(AF_INET, kind, 0)
            guard descriptor >= 0 else { throw System.Failure(call: "socket", code: errno) }
            if let receiveBuffer { set(descriptor, SO_RCVBUF, receiveBuffer) }
            setNoDelay(descriptor)
            var address = loopback(port, last: last)
            code = unsafe withSocketAddress(&address) {
                unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        case .unix(let path):
            descriptor = socket(AF_UNIX, kind, 0)
            guard descriptor >= 0 else { throw System.Failure(call: "socket", code: errno) }
            let length = socklen_t(MemoryLayout<sockaddr_un>.size)
            if let name {
                var address = unixAddress(name)
                guard unsafe withSocketAddress(&address, { unsafe Glibc.bind(descriptor, $0, length) }) == 0 else {
                    let failure = System.Failure(call: "bind \(name)", code: errno)
                    close(descriptor)
                    throw failure
                }
            }
            var address = unixAddress(path)
            code = unsafe withSocketAddress(&address) { unsafe Glibc.connect(descriptor, $0, length) }
        }
        if code != 0, errno != EINPROGRESS {
            let failure = System.Failure(call: "connect \(endpoint)", code: errno)
            close(descriptor)
            throw failure
        }
        if let layer = layer(of: endpoint, on: descriptor) { SocketLayers.add(layer, to: descriptor) }
        return descriptor
    }

    private static func layer(of endpoint: Endpoint, on descriptor: Int32) -> (any SocketLayer)? {
        switch endpoint {
        case .tcp, .unix: nil
        case .tls: SecuredSocket(descriptor, as: .client)
        case .framed: FramedSocket(descriptor, over: nil)
        case .framedTLS:
            FramedSocket(descriptor, over: SecuredSocket(descriptor, as: .client, TLSEnd.Offer(protocols: ["h2"])))
        }
    }

    /// Why connecting failed, or nil: then it is connected.
    static func failure(of descriptor: Int32) -> Int32? {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        _ = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        guard code == 0 else { return code }
        SocketLayers[descriptor]?.begin()
        return nil
    }

    static func read(_ descriptor: Int32, into buffer: inout [UInt8], atMost limit: Int = .max) -> Outcome {
        if let layer = SocketLayers[descriptor] { return layer.read(into: &buffer, atMost: limit) }
        return readPlain(descriptor, into: &buffer, atMost: limit)
    }

    static func write(_ descriptor: Int32, _ bytes: [UInt8], from start: Int) -> Outcome {
        if let layer = SocketLayers[descriptor] { return layer.write(bytes[start...]) }
        return writePlain(descriptor, bytes, from: start)
    }

    static func readPlain(_ descriptor: Int32, into buffer: inout [UInt8], atMost limit: Int) -> Outcome {
        let count = unsafe Glibc.read(descriptor, &buffer, min(limit, buffer.count))
        if count > 0 { return .bytes(count) }
        if count == 0 { return .ended }
        return errno == EAGAIN || errno == EINTR ? .notNow : .failed(errno)
    }

    static func writePlain(_ descriptor: Int32, _ bytes: [UInt8], from start: Int) -> Outcome {
        let count = unsafe bytes.withUnsafeBytes { all in
            let rest = unsafe UnsafeRawBufferPointer(rebasing: all[start...])
            return unsafe send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
        }
        if count >= 0 { return .bytes(count) }
        return errno == EAGAIN || errno == EINTR ? .notNow : .failed(errno)
    }

    static func close(_ descriptor: Int32) {
        SocketLayers.remove(descriptor)?.sayEnd()
        Spawn.betweenStarts { _ = Glibc.close(descriptor) }
    }

    static func finishSending(_ descriptor: Int32) {
        if let layer = SocketLayers[descriptor] { return layer.finishSending() }
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Closes with a reset instead of an orderly end.
    static func reset(_ descriptor: Int32) {
        _ = SocketLayers.remove(descriptor)
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        Spawn.betweenStarts { _ = Glibc.close(descriptor) }
    }

    /// Waits until one of `entries` has something to tell; a negative descriptor is passed over. What has a layer may
    /// tell that it is ready when it is not, in the middle of a handshake: then a read or write gives `.notNow`.
    static func poll(_ entries: inout [pollfd], within timeout: Duration?) {
        let milliseconds = timeout.map { Int32(clamping: Int64($0.inMilliseconds.rounded(.up))) } ?? -1
        guard !SocketLayers.isEmpty else {
            _ = unsafe Glibc.poll(&entries, nfds_t(entries.count), max(milliseconds, -1))
            return
        }
        let layers = SocketLayers[entries.map(\.fd)]
        let wanted = entries.map(\.events)
        var ready: [Int] = []
        for index in entries.indices {
            guard let interest = layers[index]?.interest(for: wanted[index]) else { continue }
            entries[index].events = interest.events
            if interest.isReady { ready.append(index) }
        }
        _ = unsafe Glibc.poll(&entries, nfds_t(entries.count), ready.isEmpty ? max(milliseconds, -1) : 0)
        for index in entries.indices where entries[index].events != wanted[index] {
            entries[index].events = wanted[index]
            if entries[index].revents != 0 { entries[index].revents = wanted[index] }
        }
        for index in ready { entries[index].revents |= Int16(POLLIN) }
    }

    /// A pipe that never blocks: `Waker` writes to it to interrupt a `poll`.
    static func makePipe() -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [-1, -1]
        Spawn.betweenStarts {
            precondition(unsafe pipe(&ends) == 0, "no pipe")
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        }
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        return (ends[0], ends[1])
    }

    static func poke(_ pipe: Int32) {
        let byte: [UInt8] = [1]
        _ = unsafe Glibc.write(pipe, byte, 1)
    }

    // MARK: -

    private static var kind: Int32 {
        Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    }

    private static func loopback(_ port: UInt16, last: UInt8 = 1) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = (UInt32(0x7F00_0000) | UInt32(last)).bigEndian
        address.sin_port = port.bigEndian
        return address
    }

    private static func unixAddress(_ path: String) -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        return address
    }

    private static func withSocketAddress<Address, Result>(
        _ address: inout Address, _ body: (UnsafeMutablePointer<sockaddr>) -> Result
    ) -> Result {
        unsafe withUnsafeMutableBytes(of: &address) {
            unsafe body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self))
        }
    }

    private static func set(_ descriptor: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static func setNoDelay(_ descriptor: Int32) {
        var value: Int32 = 1
        _ = unsafe setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &value, socklen_t(MemoryLayout<Int32>.size)
        )
    }
}
