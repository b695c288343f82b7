import Testing

/// Scenarios block their thread, so they run on threads of their own and leave Swift's pool to the other tests. A few
/// at a time, first come first served; a heavy one alone.
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
            try await withTaskExecutorPreference(ThreadPerJob.shared) { try await function() }
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
    static var heavyScenario: Self { Self(turnstile: .scenarios, weight: Turnstile.scenarios.width) }
    /// A few dozen at a time, beside the others: for what mostly waits and shares one program.
    static var byDozens: Self { Self(turnstile: .dozens, weight: 1) }
}

/// Lets so many in that their weights stay within the width, in the order in which they came.
actor Turnstile {
    static let scenarios = Turnstile(width: 4)
    static let dozens = Turnstile(width: 48)

    let width: Int
    private var inside = 0
    private var queue: [(weight: Int, go: CheckedContinuation<Void, Never>)] = []

    private init(width: Int) { self.width = width }

    func enter(_ weight: Int) async {
        if queue.isEmpty, inside + weight <= width {
            inside += weight
        } else {
            await withCheckedContinuation { queue.append((weight, $0)) }
        }
    }

    func leave(_ weight: Int) {
        inside -= weight
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
