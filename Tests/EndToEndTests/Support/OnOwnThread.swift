import Testing

/// Scenarios block their thread, so they run on threads of their own and leave Swift's pool to the other tests. A few
/// at a time, the large ones two at a time, a heavy one alone.
struct OnOwnThread: TestTrait, SuiteTrait, TestScoping {
    let turnstile: Turnstile
    let weight: Int
    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        await turnstile.enter(weight)
        let outcome: Result<Void, any Error>
        do {
            try await Transport.$current.withValue(Transport(of: test)) {
                try await withTaskExecutorPreference(ThreadPerJob.shared) { try await function() }
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await turnstile.leave(weight)
        try outcome.get()
    }
}

extension Trait where Self == OnOwnThread {
    static var scenario: Self { Self(turnstile: .scenarios, weight: 1) }
    /// Two at a time: hundreds of clients, or many megabytes.
    static var largeScenario: Self { Self(turnstile: .scenarios, weight: Turnstile.scenarios.width / 2) }
    /// By itself.
    static var heavyScenario: Self { Self(turnstile: .scenarios, weight: Turnstile.scenarios.width) }
    /// A few dozen at a time, beside the others: for what mostly waits and shares one program.
    static var byDozens: Self { Self(turnstile: .dozens, weight: 1) }
}

/// Lets so many in that their weights stay within the width: the light ones first, so that the width is emptied once for
/// the heavy ones. Those of one weight come in their order.
actor Turnstile {
    static let scenarios = Turnstile(width: 6)
    static let dozens = Turnstile(width: 48)

    let width: Int
    private var inside = 0
    private var queue: [(weight: Int, go: CheckedContinuation<Void, Never>)] = []

    private init(width: Int) { self.width = width }

    func enter(_ weight: Int) async {
        await withCheckedContinuation { go in
            queue.insert((weight, go), at: queue.firstIndex { $0.weight > weight } ?? queue.endIndex)
            admit()
        }
    }

    func leave(_ weight: Int) {
        inside -= weight
        admit()
    }

    private func admit() {
        while let next = queue.first, inside + next.weight <= width {
            inside += next.weight
            queue.removeFirst().go.resume()
        }
    }
}

private final class ThreadPerJob: TaskExecutor {
    static let shared = ThreadPerJob()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        System.startThread { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
