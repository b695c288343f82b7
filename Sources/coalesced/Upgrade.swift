import Glibc
import Libevent

/// The change to the program that is by now at this one's path, with a bound on how long it takes.
///
/// ```
/// starting ─it is ready, and accepts→ accepted
///    ├─it ends→ failed
///    └─the time is over, or cancel→ ending ─it ends→ failed
/// ```
///
/// Owned by the daemon, confined to its loop.
final class Upgrade {
    enum Event {
        /// The new program waits for `permit`, to accept clients beside this one.
        case isReady
        /// The new program accepts; `letGo` leaves the sockets to it.
        case accepts(process: Int32)
        /// Something was purged there, which `done` answers.
        case purges(done: () -> Void)
        case failed(reason: String)
    }

    private enum State {
        case starting(deadline: Timer)
        case accepted
        case ending(because: String)
        case failed
    }

    /// How long a program that was asked to end may take before it is killed, in nanoseconds.
    private static let killDelay: Int64 = 1_000_000_000

    private let loop: EventLoop
    private var state: State
    private var successor: SuccessorProgram?

    /// - Parameter onEvent: called on the loop, never from here.
    /// - Throws: if the program cannot be started.
    init(
        to path: String, handing sockets: [(socket: ListeningSocket, use: InheritedSockets.Use)],
        within limit: Duration,
        on loop: EventLoop, onEvent: @escaping (Event) -> Void
    ) throws(SystemError) {
        self.loop = loop
        state = .failed
        successor = try SuccessorProgram(at: path, handing: sockets, on: loop) { [unowned self] event in
            received(event, onEvent)
        }
        state = .starting(
            deadline: loop.schedule(after: limit.nanoseconds) { [unowned self] in
                end(because: "it does not accept clients after \(limit)")
            })
    }

    private func received(_ event: SuccessorProgram.Event, _ onEvent: (Event) -> Void) {
        switch (state, event) {
        case (.starting, .isReady): onEvent(.isReady)
        case (.starting(let deadline), .accepts):
            deadline.cancel()
            state = .accepted
            onEvent(.accepts(process: successor?.process ?? 0))
        case (.starting(let deadline), .ended(let ending)):
            deadline.cancel()
            state = .failed
            onEvent(.failed(reason: "\(ending)"))
        case (.ending(let reason), .ended):
            state = .failed
            onEvent(.failed(reason: reason))
        case (_, .purges): onEvent(.purges { [weak successor] in successor?.tellPurged() })
        // A program that is ready or accepts too late is ended all the same: it does not have the sockets for itself.
        case (.ending, .isReady), (.ending, .accepts), (.accepted, _), (.failed, _): break
        }
    }

    /// Lets the new program accept. Call this when it is ready.
    func permit() { successor?.permit() }

    /// Leaves the sockets to the new program. Call this when this program accepts no more.
    func letGo() { successor?.release() }

    /// Ends the new program.
    func cancel() {
        if case .starting(let deadline) = state { deadline.cancel() }
        end(because: "this program ends")
    }

    /// Ends a new program that was asked to end, and does not wait for it.
    func kill() { if case .ending = state { successor?.signal(SIGKILL) } }

    private func end(because reason: String) {
        guard case .starting = state else { return }
        state = .ending(because: reason)
        successor?.signal(SIGTERM)
        loop.schedule(after: Self.killDelay) { [weak successor] in successor?.signal(SIGKILL) }
    }
}
