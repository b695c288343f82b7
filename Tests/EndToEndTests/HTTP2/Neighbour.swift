import Synchronization

/// An ordinary client of HTTP/1.1 that asks for one hit after another on a thread of its own, and watches how much memory
/// the program has.
final class Neighbour: Sendable {
    private struct State {
        var waits: [Duration] = []
        /// What the program did meanwhile, in processor time.
        var work: [Duration] = []
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
                let (begun, workBefore) = (Instant.now, proxy.processorTime)
                try client.send(proxy.request("GET", target))
                let answer = try client.answer()
                guard answer.status == 200, answer.isClean, answer.text == body else {
                    return "\(answer.status) \(answer.ending) \(answer.text.prefix(80))"
                }
                let (took, work) = (Instant.now - begun, proxy.processorTime - workBefore)
                let memory = proxy.residentBytes
                state.withLock { state in
                    state.waits.append(took)
                    state.work.append(work)
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

    struct Account {
        var served = 0
        /// The wait that 1 % exceeded.
        var wait = Duration.zero
        /// The processor time that the program took during a wait, which 1 % exceeded.
        var work = Duration.zero
        var failure: String?
    }

    /// Ends it.
    func stop() throws -> Account {
        state.withLock { $0.isToEnd = true }
        try eventually("the neighbour ends", within: .seconds(30)) { state.withLock { $0.hasEnded } }
        return state.withLock { state in
            Account(
                served: state.waits.count, wait: Self.slowest(state.waits), work: Self.slowest(state.work),
                failure: state.failure)
        }
    }

    private static func slowest(_ times: [Duration]) -> Duration {
        times.isEmpty ? .zero : times.sorted()[min(times.count - 1, times.count * 99 / 100)]
    }
}
