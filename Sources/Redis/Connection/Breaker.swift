/// The breaker decides whether commands are sent, by the outcome of those before. A value without I/O.
///
/// ```
/// closed ─failures in a row→ open ─beginProbe→ probing ─success→ closed
///                             ↑                   └─failure→ open
///                             └───────────────────┘
/// ```
///
/// While it is open or probing, the outcome of commands that were sent before changes nothing.
struct Breaker: Sendable {
    enum State: Hashable, Sendable {
        case closed(failures: Int)
        case open
        case probing
    }

    private let mostFailures: Int
    private(set) var state = State.closed(failures: 0)

    /// - Parameter mostFailures: so many in a row open it.
    init(mostFailures: Int) { self.mostFailures = mostFailures }

    var isClosed: Bool { if case .closed = state { true } else { false } }

    /// An answer came in time.
    mutating func succeeded() {
        switch state {
        case .closed: state = .closed(failures: 0)
        case .open, .probing: break
        }
    }

    /// No answer came in time, or none can come any more.
    /// - Returns: whether this failure opened it.
    mutating func failed() -> Bool {
        switch state {
        case .closed(let failures) where failures + 1 >= mostFailures:
            state = .open
            return true
        case .closed(let failures):
            state = .closed(failures: failures + 1)
            return false
        case .open, .probing:
            return false
        }
    }

    /// - Returns: whether a probe is to be sent.
    mutating func beginProbe() -> Bool {
        guard state == .open else { return false }
        state = .probing
        return true
    }

    mutating func probeEnded(isSuccess: Bool) {
        guard state == .probing else { return }
        state = isSuccess ? .closed(failures: 0) : .open
    }
}
