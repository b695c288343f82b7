import Glibc
import Synchronization

/// What one client of a crowd does.
struct Visitor: Sendable {
    enum Pace: Sendable {
        case eager
        /// Reads at most so many bytes, then rests.
        case slow(bytes: Int, every: Duration)
        /// Never reads.
        case stuck
    }

    var request: [UInt8]
    var method = "GET"
    var pace = Pace.eager
    var keepsOpen = false
    var pattern = Pattern()
}

/// Many clients at once on one thread. They start when the crowd is made; the test looks at their answers while they
/// come.
final class Crowd: Sendable {
    private let state: Mutex<CrowdState>
    private let waker: Waker

    init(at endpoint: Endpoint, _ visitors: [Visitor]) {
        _ = System.descriptorLimit
        let initial = CrowdState(endpoint: endpoint, visitors: visitors)
        waker = initial.table.waker
        state = Mutex(initial)
        let waker = waker
        System.startThread { [weak self] in
            Self.run(waker) { self }
        }
    }

    deinit {
        state.withLock { $0.closeAll() }
        waker.wake()
    }

    var answers: [Answer] { state.withLock { $0.members.map(\.reader.answer) } }
    /// How many have sent their request.
    var asked: Int { state.withLock { $0.asked } }
    var pending: Int { state.withLock { $0.pending } }

    /// Waits until every request is on its way.
    @discardableResult
    func gathered(within limit: Duration = .seconds(20)) throws -> Crowd {
        try eventually("all \(answers.count) clients have asked", within: limit) { asked == answers.count }
        return self
    }

    /// Waits until nobody waits for an answer any more, and gives all of them. Who is late stays `.pending`.
    func finished(within limit: Duration = .seconds(30)) -> [Answer] {
        let deadline = Instant.now + limit
        while pending > 0, .now < deadline { System.nap(.milliseconds(3)) }
        return answers
    }

    /// The next round: everyone whose connection is still there asks again.
    func again() {
        state.withLock { $0.again() }
        waker.wake()
    }

    /// One of them goes away with a reset.
    func leave(_ index: Int) {
        state.withLock { $0.leave(index) }
        waker.wake() // a socket that is being polled is not closed before the poll ends
    }

    /// All of them end their connections.
    func close() {
        state.withLock { $0.closeAll() }
        waker.wake()
    }

    /// Holds the crowd only while it works, so that a forgotten crowd ends.
    private static func run(_ waker: Waker, _ crowd: () -> Crowd?) {
        var scratch = [UInt8](repeating: 0, count: 65536)
        while true {
            guard let (entries, deadline) = crowd()?.prepare() else { return }
            let slots = PollTable.wait(on: entries, until: deadline)
            guard let crowd = crowd() else { return }
            crowd.state.withLock { $0.work(slots, &scratch) }
        }
    }

    private func prepare() -> ([pollfd], Instant?)? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            state.connectMore()
            return (state.table.entries, state.nextDeadline)
        }
    }
}
