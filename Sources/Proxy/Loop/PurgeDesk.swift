import Bytes
import Libevent
import Logging

/// The end of a purge that an operator asked for.
package enum PurgeAnswer: Sendable {
    /// It is done, here and in the program before this one; with a sentence that says how much was purged.
    case done(String)
    /// Nothing was purged: another program takes the place of this one, and must be asked.
    case elsewhere
    /// The program is ending; a part may have been purged.
    case ending
}

/// Serves the purges that operators ask for, at the admin listener and by `PURGE`: refuses them while another program
/// takes over, writes a line to the log for each, and answers when the program before this one has purged, too.
///
/// Owned by the server, confined to the control loop. `PurgeMail` leads to it from the loops of the workers.
package final class PurgeDesk {
    /// Purges in this program.
    var purge: (PurgeRequest, @escaping (PurgeOutcome?) -> Void) -> Void = { $1(nil) }
    /// Called after a purge; its argument answers whoever asked for it.
    package var onPurged: ((@escaping () -> Void) -> Void) = { $0() }
    /// Whether purges are refused: another program takes the place of this one, or has taken it.
    package var isClosed = false
    /// Writes a line to the log.
    package var report: (String) -> Void

    init(log: Logger) { report = { log.info("\($0)") } }

    /// - Parameters:
    ///   - summary: what is purged, for the log.
    ///   - completion: called once on the control loop, perhaps at once.
    package func serve(_ request: PurgeRequest, _ summary: String, _ completion: @escaping (PurgeAnswer) -> Void) {
        guard !isClosed else { return completion(.elsewhere) }
        purge(request) { [self] outcome in
            guard let outcome else {
                report("a purge was not finished: \(summary)")
                return completion(.ending)
            }
            let text = outcome.text(of: request)
            report("\(text): \(summary)")
            let rest = "responses still being fetched will not be stored\(request.isSoft ? " as fresh" : "")"
            onPurged { completion(.done("\(text); \(rest)")) }
        }
    }
}

/// The way from the loops of the workers to the desk. Any thread.
final class PurgeMail: Sendable {
    private let desk = Guarded<LoopBound<PurgeDesk>?>(nil)

    /// On the control loop.
    func open(_ desk: PurgeDesk, on control: EventLoop) {
        let bound = LoopBound(desk, on: control)
        self.desk.withLock { $0 = bound }
    }

    /// Has the desk serve a purge.
    /// - Parameters:
    ///   - loop: the caller's.
    ///   - completion: called once on `loop`, not inside this call; never, if either loop ends before.
    func ask(
        _ request: PurgeRequest, _ summary: String, from loop: EventLoop,
        _ completion: @escaping (PurgeAnswer) -> Void
    ) {
        let caller = LoopBound(completion, on: loop)
        guard let desk = desk.withLock({ $0 }) else { return caller.handle.enqueue { caller.value(.ending) } }
        desk.handle.enqueue {
            desk.value.serve(request, summary) { answer in caller.handle.enqueue { caller.value(answer) } }
        }
    }
}
