import Libevent

/// The demo's slow origin. It serves `DemoPage` on a thread of its own and reports each request.
struct DemoOrigin {
    let port: UInt16
    private let thread: LoopThread

    /// Serves on a free port of the loopback address until stopped.
    static func start() throws -> DemoOrigin {
        // Find the port here, where a failure can be thrown. The thread binds the port again.
        let port = try freePort()
        let thread = try LoopThread(name: "demo origin") { loop in
            let site = DemoSite(loop)
            do throws(ListenError) {
                let listener = try Listener(.ipv4(.loopback, port: port), on: loop) { descriptor, _ in
                    site.accept(descriptor)
                }
                loop.run()
                listener.close()
            } catch {
                System.writeError("demo origin: \(error)\n")
            }
            site.close()
        }
        return DemoOrigin(port: port, thread: thread)
    }

    func stop() {
        thread.stop()
        thread.join()
    }

    private static func freePort() throws -> UInt16 {
        try addresses(1, from: .ipv4(.loopback, port: 0))[0].port ?? 0
    }

    /// Whether nobody listens at `address`.
    static func isFree(_ address: SocketAddress) throws -> Bool {
        let loop = try EventLoop()
        guard let listener = try? Listener(address, on: loop, accept: { _, _ in }) else { return false }
        listener.close()
        return true
    }

    /// `count` addresses with the ports from that of `first` on, or with free ones if that is 0.
    static func addresses(_ count: Int, from first: SocketAddress) throws -> [SocketAddress] {
        if let port = first.port, port > 0 { return (0..<count).map { first.withPort(port + UInt16($0)) } }
        let loop = try EventLoop()
        // All are open at once, so that no port comes twice.
        let listeners = try (0..<count).map { _ in try Listener(first, on: loop) { _, _ in } }
        defer { for listener in listeners { listener.close() } }
        return listeners.map { first.withPort($0.localAddress.port ?? 0) }
    }
}

/// The state that the connections share. On the origin's loop.
final class DemoSite {
    private let loop: EventLoop
    private var counts: [DemoPage: Int] = [:]
    private var connections: [ObjectIdentifier: DemoConnection] = [:]

    init(_ loop: EventLoop) { self.loop = loop }

    func accept(_ descriptor: consuming Descriptor) {
        let connection = DemoConnection(adopting: descriptor, on: loop, site: self)
        connections[ObjectIdentifier(connection)] = connection
        connection.startReading()
    }

    func ended(_ connection: DemoConnection) { connections[ObjectIdentifier(connection)] = nil }

    func close() {
        for connection in connections.values { connection.close() }
        connections.removeAll()
    }

    func answer(_ request: DemoRequest) -> DemoPage.Answer {
        let path = request.path.prefix { $0 != "?" }
        guard let page = DemoPage(rawValue: String(path)) else {
            return DemoPage.Answer(status: "404 Not Found", pieces: [.init(text: "There is no such page.\n")])
        }
        counts[page, default: 0] += 1
        let count = counts[page, default: 1]
        print(
            "origin: \(request.method) \(request.path), fetch \(count)\(request.ifNoneMatch.map { ", changed since \($0)?" } ?? "")"
        )
        System.flushOutput()
        return page.answer(count, at: loop.wallClockSeconds, ifNoneMatch: request.ifNoneMatch)
    }
}

/// The parts of a request that the demo uses. Only this program's proxy sends requests to the demo, and they are
/// well-formed.
struct DemoRequest {
    let method: Substring
    let path: Substring
    let ifNoneMatch: String?

    init?(_ head: String) {
        let lines = head.split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3 else { return nil }
        method = words[0]
        path = words[1]
        ifNoneMatch = lines.dropFirst().first { $0.lowercased().hasPrefix("if-none-match:") }
            .map { $0.drop { $0 != ":" }.dropFirst().drop { $0 == " " } }.map(String.init)
    }
}
