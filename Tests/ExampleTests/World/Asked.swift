import Synchronization

/// What a server, a database or a disk was asked for, and has not answered yet. A test answers.
final class Asked<Question: Hashable & Sendable, Answer: Sendable>: Sendable {
    typealias Callback = @Sendable (Result<Answer, any Error>) -> Void

    private struct State: Sendable {
        var log: [Question] = []
        var open: [(question: Question, callback: Callback)] = []
    }

    private let state = Mutex(State())

    /// All questions so far, in their order.
    var log: [Question] { state.withLock { $0.log } }

    func ask(_ question: Question, _ callback: @escaping Callback) {
        state.withLock { state in
            state.log.append(question)
            state.open.append((question, callback))
        }
    }

    func ask(_ question: Question) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            ask(question) { continuation.resume(with: $0) }
        }
    }

    /// Answers the oldest question that is open, once there is one.
    func answer(_ result: Result<Answer, any Error>) async {
        while true {
            let callback = state.withLock { $0.open.isEmpty ? nil : $0.open.removeFirst().callback }
            if let callback { return callback(result) }
            await Task.yield()
        }
    }
}

/// What happened, in order.
final class Log<Entry: Sendable>: Sendable {
    private let kept = Mutex<[Entry]>([])

    var entries: [Entry] { kept.withLock { $0 } }

    func append(_ entry: Entry) { kept.withLock { $0.append(entry) } }
}

/// Returns when something that other threads do is done.
func until(_ isTrue: () -> Bool) async {
    while !isTrue() { await Task.yield() }
}
