import Libevent
import Routing
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
    ///   - feed: `nil` if there is no access log.
    init(
        index: Int, on loop: EventLoop, shared: SharedState, loopSettings: LoopSettings, metrics: LoopMetrics,
        feed: AccessLogFeed?
    ) {
        self.index = index
        context = LoopContext(
            ofWorker: index, on: loop, shared: shared, settings: loopSettings, metrics: metrics,
            feed: feed)
        clients = ClientConnections(ofWorker: index, in: context)
    }

    /// - Parameter settings: the new settings, of which the worker makes a copy.
    func apply(_ settings: LoopSettings) {
        context.apply(settings)
        clients.applySettings()
    }

    /// Accepts no more connections, closes each connection after its current request, and calls `whenEmpty` once none
    /// is left.
    func drain(whenEmpty: @escaping () -> Void) {
        clients.stopPersisting()
        clients.drain(whenEmpty: whenEmpty)
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
