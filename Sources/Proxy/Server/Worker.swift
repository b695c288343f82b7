import Routing
import TLS

/// One loop's share of the proxy: its listeners and clients, and the context of its requests and fetches. Confined to
/// the loop's thread.
final class Worker {
    /// This worker's place among the workers.
    let index: Int
    let context: LoopContext
    let clients: ClientConnections

    /// - Parameter tls: the certificates of the TLS listeners; `nil` if there are none.
    init(index: Int, _ context: LoopContext, _ tls: TLSServer? = nil) {
        self.index = index
        self.context = context
        clients = ClientConnections(ofWorker: index, tls, in: context)
    }

    /// - Parameter settings: the new settings, of which the worker makes a copy.
    func apply(_ settings: LoopSettings, _ tls: TLSServer?) {
        context.apply(settings)
        clients.applySettings(tls)
    }

    /// Accepts no more connections, closes each connection after its current request, and calls `whenEmpty` once none
    /// is left, and no fetch writes for the other machines of the shared tier.
    /// - Parameter closingIdle: otherwise each idle connection waits for one more request.
    func drain(closingIdle: Bool = true, whenEmpty: @escaping () -> Void) {
        clients.stopPersisting()
        guard let tier = context.tier else { return clients.drain(closingIdle: closingIdle, whenEmpty: whenEmpty) }
        clients.drain(closingIdle: closingIdle) { tier.whenNobodyWrites(whenEmpty) }
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
        context.tier?.stop()
        context.recorder.finish()
    }
}
