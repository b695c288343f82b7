import Libevent
import Telemetry

/// One loop's share of the proxy: its listeners and clients, and the context of its requests and fetches. Confined to
/// the loop's thread.
final class Worker {
    /// This worker's place among the workers.
    let index: Int
    let context: LoopContext
    let clients: ClientConnections

    /// - Parameters:
    ///   - loopSettings: the settings, of which the worker makes a copy.
    ///   - accessLog: `nil` if there is no access log.
    init(
        index: Int, on loop: EventLoop, shared: SharedState, loopSettings: LoopSettings, metrics: LoopMetrics,
        accessLog: AccessLog?
    ) {
        self.index = index
        context = LoopContext(
            ofWorker: index, on: loop, shared: shared, settings: loopSettings, metrics: metrics,
            feed: accessLog?.feed(ofWorker: index, on: loop))
        clients = ClientConnections(ofWorker: index, in: context)
    }

    /// Accepts connections on `sockets` from now on.
    func listen(on sockets: [ListeningSocket]) throws(ListenError) { try clients.listen(on: sockets) }

    /// Accepts no more connections at `addresses`; open ones stay.
    func stopListening(at addresses: [SocketAddress]) { clients.stopListening(at: addresses) }

    /// - Parameter settings: the new settings, of which the worker makes a copy.
    func apply(_ settings: LoopSettings) {
        context.apply(settings)
        clients.applySettings()
    }

    /// Closes each connection after its current request from now on; idle connections stay open until `drain`.
    func stopPersisting() { clients.stopPersisting() }

    /// Accepts no more connections, closes each connection after its current request, and calls `whenEmpty` once none
    /// is left.
    /// - Parameter closingIdle: otherwise each idle connection waits for one more request.
    func drain(closingIdle: Bool = true, whenEmpty: @escaping () -> Void) {
        stopPersisting()
        clients.drain(closingIdle: closingIdle, whenEmpty: whenEmpty)
    }

    /// Counts the requests and tunnels that are about to be aborted.
    func reportCutOff() {
        context.recorder.isCuttingOff = true
        clients.reportCutOff()
    }

    /// Ends every connection now.
    func cut() {
        // The loop may have been stopped before it ran the posted `reportCutOff`.
        reportCutOff()
        clients.cut()
        context.pools.retire()
        context.recorder.finish()
    }
}
