import Bytes
import HTTPSemantics
import Libevent
import TLS
import Telemetry
import Testing

@testable import Upstream

/// Runs exchanges on a loop of its own, and tells what was reported of each, as a transcript.
final class Asker: ExchangeHandler {
    let loop: EventLoop
    let servers: [ScriptedServer]
    let metrics = LoopMetrics()
    let group: ServerGroup
    let pool: UpstreamPool
    /// What was reported of the exchanges, one after another.
    private(set) var events: [String] = []
    private(set) var tunnel: UpstreamConnection?
    /// The last failure.
    private(set) var failure: UpstreamError?
    var retryAfter: UInt64? { failure?.retryAfter }
    private let isMemoryShort = Exclusive(false)
    /// How a piece of a body is taken.
    var intake: (String) -> BodyIntake = { _ in .taken }
    private var onEvent: (String) -> Void = { _ in }

    /// - Parameters:
    ///   - scripts: of each server, what its connections follow.
    ///   - change: the settings of the origin.
    convenience init(_ scripts: [[ScriptedServer.Step]]..., change: (inout UpstreamSettings) -> Void = { _ in })
        throws
    {
        try self.init(scripts, tls: nil, change: change)
    }

    /// - Parameter tls: of the servers; `nil`: they speak none.
    init(
        _ scripts: [[[ScriptedServer.Step]]], tls: TLSServerSettings?, change: (inout UpstreamSettings) -> Void
    ) throws {
        let loop = try EventLoop()
        self.loop = loop
        let server = try tls.map { try TLSServer($0) }
        servers = try scripts.map { try ScriptedServer(on: loop, $0, tls: server) }
        var settings = UpstreamSettings(
            name: "origin",
            servers: servers.map { UpstreamServer(host: "127.0.0.1", port: $0.port, isSecure: tls != nil) })
        change(&settings)
        metrics.change(toUpstreams: [settings.name])
        group = ServerGroup(settings)
        pool = UpstreamPool(
            group, on: loop, resolver: Resolver(on: loop), names: NameResolution(),
            buffers: BufferStock(bufferCapacity: 1 << 16, most: 4),
            isMemoryShort: { [isMemoryShort] in isMemoryShort.use { $0 } }, metrics: metrics, onNews: { _ in })
    }

    deinit { loop.finish() }

    /// Whether responses should be read in small pieces, from now on.
    func setMemoryShort(_ isShort: Bool) { isMemoryShort.use { $0 = isShort } }

    /// Whether each place gets requests.
    var inUse: [Bool] { group.entries.map(\.place.isInUse) }

    func counted(_ counter: UpstreamCounter) -> UInt64 { metrics.read()[upstream: pool.settings.name][counter] }

    func exchange(
        _ method: HTTPSemantics.Method = .get, content: UpstreamRequest.Content = .none, asksForUpgrade: Bool = false,
        owner: BoundConnections? = nil, on other: UpstreamPool? = nil
    ) -> Exchange {
        let request = UpstreamRequest(
            method: method, head: ByteSlice("\("\(method)".uppercased()) / HTTP/1.1\r\n\r\n"), content: content,
            asksForUpgrade: asksForUpgrade)
        return Exchange(request, pool: other ?? pool, handler: self, owner: owner)
    }

    /// Runs the loop until an event for which `isLast` holds.
    func run(until isLast: @escaping (String) -> Bool) {
        onEvent = { [unowned loop] event in if isLast(event) { loop.stop() } }
        run()
    }

    /// Runs the loop until `condition` holds.
    func run(untilTrue condition: @escaping () -> Bool) {
        func look() {
            if condition() { return loop.stop() }
            loop.schedule(after: 1_000_000, look)
        }
        look()
        run()
    }

    /// Runs the loop until it is stopped, which it is after ten seconds in any case.
    func run() {
        let limit = loop.schedule(after: 10_000_000_000) { [unowned loop] in
            Issue.record("nothing stopped the loop")
            loop.stop()
        }
        loop.run()
        limit.cancel()
    }

    /// - Returns: what was reported, up to the end of the exchange.
    func ask(_ exchange: Exchange) -> [String] {
        events = []
        exchange.start()
        run { $0.hasPrefix("end") || $0.hasPrefix("failed") || $0 == "upgraded" }
        return events
    }

    private func note(_ event: String) {
        events.append(event)
        onEvent(event)
    }

    // MARK: ExchangeHandler

    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead) {
        note("interim \(head.head.status.code)")
    }
    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead) { note("head \(head.head.status.code)") }

    func exchange(_ exchange: Exchange, received body: Span<UInt8>) -> BodyIntake {
        let text = String(body)
        note("body \(text)")
        return intake(text)
    }

    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?) {
        note(trailers.map { "end with \(String($0))" } ?? "end")
    }

    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead) {
        tunnel = connection
        note("upgraded")
    }

    func exchange(_ exchange: Exchange, failedWith error: UpstreamError) {
        failure = error
        note("failed \(error.failure == .unavailable ? error.word : error.failure.name)")
    }
    func exchangeTakesContent(_ exchange: Exchange) { note("takes content") }
}
