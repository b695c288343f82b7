import Testing

/// Scenarios block their thread, so they run on threads of their own and leave Swift's pool to the other tests. A few
/// at a time, first come first served; a heavy one alone.
struct OnOwnThread: TestTrait, SuiteTrait, TestScoping {
    let weight: Int
    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        if weight > 0 { await Turnstile.shared.enter(weight) }
        let outcome: Result<Void, any Error>
        do {
            try await withTaskExecutorPreference(ThreadPerJob.shared) { try await function() }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        if weight > 0 { await Turnstile.shared.leave(weight) }
        try outcome.get()
    }
}

extension Trait where Self == OnOwnThread {
    static var scenario: Self { Self(weight: 1) }
    /// All at the same time: for what mostly waits and shares one program.
    static var atOnce: Self { Self(weight: 0) }
    static var heavyScenario: Self { Self(weight: Turnstile.width) }
}

/// Lets so many in that their weights stay within the width, in the order in which they came.
private actor Turnstile {
    static let shared = Turnstile()
    static let width = 4

    private var inside = 0
    private var queue: [(weight: Int, go: CheckedContinuation<Void, Never>)] = []

    func enter(_ weight: Int) async {
        if queue.isEmpty, inside + weight <= Self.width {
            inside += weight
        } else {
            await withCheckedContinuation { queue.append((weight, $0)) }
        }
    }

    func leave(_ weight: Int) {
        inside -= weight
        while let next = queue.first, inside + next.weight <= Self.width {
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
