import Synchronization

/// An ordinary client of HTTP/1.1 that asks for one hit after another on a thread of its own, and watches how much memory
/// the program has.
final class Neighbour: Sendable {
    private struct State {
        var waits: [Duration] = []
        var failure: String?
        var mostMemory = 0
        var isToEnd = false
        var hasEnded = false
    }

    private let state = Mutex(State())
    private let proxy: Program

    /// - Parameter target: a hit.
    init(of proxy: Program, get target: String, expecting body: String) {
        self.proxy = proxy
        System.startThread { [self] in
            let failure = run(target, body)
            state.withLock { state in
                state.failure = failure
                state.hasEnded = true
            }
        }
    }

    private func run(_ target: String, _ body: String) -> String? {
        do {
            let client = try proxy.connect()
            while state.withLock({ !$0.isToEnd }) {
                let begun = Instant.now
                try client.send(proxy.request("GET", target))
                let answer = try client.answer()
                guard answer.status == 200, answer.isClean, answer.text == body else {
                    return "\(answer.status) \(answer.ending) \(answer.text.prefix(80))"
                }
                let took = Instant.now - begun
                let memory = proxy.residentBytes
                state.withLock { state in
                    state.waits.append(took)
                    state.mostMemory = max(state.mostMemory, memory)
                }
                // Its own pace: it is to measure the program, not to load it.
                System.nap(.milliseconds(1))
            }
            return nil
        } catch {
            return "\(error)"
        }
    }

    var mostMemory: Int { state.withLock { $0.mostMemory } }
    var served: Int { state.withLock { $0.waits.count } }

    /// Ends it.
    /// - Returns: the wait that 1 % exceeded, and what was wrong.
    func stop() throws -> (slowest: Duration, served: Int, failure: String?) {
        state.withLock { $0.isToEnd = true }
        try eventually("the neighbour ends", within: .seconds(30)) { state.withLock { $0.hasEnded } }
        return state.withLock { state in
            let sorted = state.waits.sorted()
            let slowest = sorted.isEmpty ? .zero : sorted[min(sorted.count - 1, sorted.count * 99 / 100)]
            return (slowest, sorted.count, state.failure)
        }
    }
}
