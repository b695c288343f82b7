import Bytes
import Coalescing
import Libevent
import Testing

@testable import Proxy

/// What comes for one that waits is kept until its turn, and given once.
struct WaitTests {
    enum Event: Sendable {
        case interim(String), result, turn, forgotten

        /// - Parameter turns: what each turn gave.
        func happen(to wait: inout Wait, _ turns: inout [String]) {
            switch self {
            case .interim(let text): wait = wait.keeping(ByteSlice(text))
            case .result: wait.received(.failure(.released))
            case .turn:
                var given = wait.takeInterims().map { String($0) }
                if case .failure(let error) = wait.takeResult() { given.append("\(error.name)") }
                turns.append(given.joined(separator: ", "))
            case .forgotten: wait = wait.forgetting()
            }
        }
    }

    static let orders: [(events: [Event], turns: [String])] = [
        ([.turn], [""]),
        ([.interim("1"), .interim("2"), .turn, .turn], ["1, 2", ""]),
        ([.interim("1"), .turn, .interim("2"), .turn], ["1", "2"]),
        ([.result, .turn, .turn], ["released", ""]),
        ([.interim("1"), .result, .turn, .turn], ["1, released", ""]),
        ([.interim("1"), .turn, .result, .turn], ["1", "released"]),
        ([.interim("1"), .result, .forgotten, .turn], [""]),
        ([.forgotten, .interim("1"), .turn], ["1"]),
    ]

    @Test(arguments: orders)
    func `each turn gives what has come since the last one`(events: [Event], turns: [String]) {
        var wait = Wait()
        var given: [String] = []
        for event in events { event.happen(to: &wait, &given) }
        #expect(given == turns)
        #expect(!wait.hasInterims)
    }

    static let bounds: [(events: [Event], isBound: Bool)] = [
        ([], true),
        ([.interim("1")], true),
        ([.interim("1"), .turn], true),
        // However late its turn is.
        ([.result], false),
        ([.result, .turn], false),
        ([.forgotten], false),
    ]

    @Test(arguments: bounds)
    func `time is up only before the result has come`(events: [Event], isBound: Bool) throws {
        let proxy = try TestProxy()
        var (wait, given) = (Wait(), [String]())
        wait.deadline = wait.deadline.awaiting((), until: 1, for: DeadlineTarget(), on: proxy.worker.deadlines)
        for event in events { event.happen(to: &wait, &given) }
        let (reached, _) = wait.deadline.reached(at: 1)
        let isDue = if case .due = reached { true } else { false }
        #expect(isDue == isBound)
    }
}
