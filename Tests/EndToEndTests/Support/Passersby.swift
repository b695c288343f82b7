import Synchronization

/// Clients that open a connection for each request, one right after another, each on a thread of its own, until they are
/// told to stop, or are dropped.
final class Passersby: Sendable {
    private struct State {
        var served = 0
        var failures: [String] = []
        var isOver = false
        var running = 0
    }

    /// What the threads hold.
    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    private let shared = Shared()

    /// - Parameter body: what each is to get.
    init(_ count: Int, at place: some Peer & Sendable, get target: String, expecting body: String) {
        shared.state.withLock { $0.running = count }
        for _ in 0..<count {
            System.startThread { [shared] in
                while shared.state.withLock({ !$0.isOver }) {
                    let failure = Self.failure(at: place, target, body)
                    shared.state.withLock { state in
                        if let failure { state.failures.append(failure) } else { state.served += 1 }
                    }
                }
                shared.state.withLock { $0.running -= 1 }
            }
        }
    }

    deinit { shared.state.withLock { $0.isOver = true } }

    var served: Int { shared.state.withLock { $0.served } }

    /// Waits until so many have been served, lets all end, and returns what was wrong.
    func stop(after count: Int = 0) throws -> [String] {
        try eventually("\(count) are served", within: .seconds(300)) { served >= count }
        shared.state.withLock { $0.isOver = true }
        try eventually("all have ended", within: .seconds(60)) { shared.state.withLock { $0.running == 0 } }
        return shared.state.withLock { $0.failures }
    }

    private static func failure(at place: some Peer, _ target: String, _ body: String) -> String? {
        do {
            let client = try place.connect()
            try client.send(place.request("GET", target))
            let answer = try client.answer()
            // Without an orderly end, which would leave the port in TIME_WAIT.
            client.reset()
            return answer.status == 200 && answer.isClean && answer.text == body
                ? nil
                : "\(answer.status) \(answer.ending)\(client.isReset ? ", reset" : "") \(answer.text.prefix(80))"
        } catch {
            return "\(error)"
        }
    }
}
