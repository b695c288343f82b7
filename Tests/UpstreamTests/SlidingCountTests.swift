import Dispatch
import Testing

@testable import Upstream

/// Two counts over ten seconds, and what hangs on them.
struct SlidingCountTests {
    private static let second: Int64 = 1_000_000_000

    private static func counts(_ count: borrowing SlidingCount, at second: Int64) -> [Int] {
        let (first, other) = count.counts(at: second * Self.second)
        return [first, other]
    }

    @Test func `what is older than ten seconds is not counted`() {
        let count = SlidingCount()
        count.add(1, 1, at: 100 * Self.second)
        count.add(2, at: 104 * Self.second)
        count.add(3, 1, at: 109 * Self.second + 1)
        #expect(Self.counts(count, at: 109) == [6, 2])
        #expect(Self.counts(count, at: 110) == [5, 1])
        #expect(Self.counts(count, at: 114) == [3, 1])
        #expect(Self.counts(count, at: 119) == [0, 0])
    }

    @Test func `a bucket that is used again forgets its former second`() {
        let count = SlidingCount()
        count.add(7, 7, at: 3 * Self.second)
        count.add(1, at: 13 * Self.second)
        #expect(Self.counts(count, at: 13) == [1, 0])
        count.clear()
        #expect(Self.counts(count, at: 13) == [0, 0])
    }

    @Test func `no thread's counts are lost`() {
        let holder = CountHolder()
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for index in 0..<4000 {
                holder.count.add(1, index % 4 == thread ? 1 : 0, at: 50 * Self.second + Int64(index))
            }
        }
        #expect(Self.counts(holder.count, at: 50) == [16000, 4000])
    }
}

private final class CountHolder: Sendable {
    let count = SlidingCount()
}

/// Retries never multiply an outage.
struct RetryBudgetTests {
    /// How many retries of `wanted` are allowed.
    private func allowed(_ budget: RetryBudget, of wanted: Int, at now: Int64 = 0) -> Int {
        (0..<wanted).count { _ in budget.take(at: now) }
    }

    @Test func `some retries are allowed, more only as a share of the requests`() {
        let budget = RetryBudget(percent: 10)
        #expect(allowed(budget, of: 50) == RetryBudget.alwaysAllowed)
        for _ in 0..<400 { budget.countRequest(at: 0) }
        #expect(allowed(budget, of: 50) == 40 - RetryBudget.alwaysAllowed)
    }

    @Test func `however fast the servers fail, the origin gets little more than the share`() {
        let budget = RetryBudget(percent: 10)
        var retries = 0
        // Ten seconds of 400 requests a second, each of which would be retried at once.
        for request in 0..<4000 {
            let now = Int64(request) * 2_500_000
            budget.countRequest(at: now)
            retries += allowed(budget, of: 1, at: now)
        }
        #expect(retries <= 400 + RetryBudget.alwaysAllowed)
    }

    @Test func `what is ten seconds old does not count`() {
        let budget = RetryBudget(percent: 50)
        for _ in 0..<100 { budget.countRequest(at: 0) }
        #expect(allowed(budget, of: 50) == 50)
        #expect(allowed(budget, of: 50, at: 10_000_000_000) == RetryBudget.alwaysAllowed)
    }

    @Test func `a budget of nothing still allows some`() {
        let budget = RetryBudget(percent: 0)
        for _ in 0..<1000 { budget.countRequest(at: 0) }
        #expect(allowed(budget, of: 50) == RetryBudget.alwaysAllowed)
    }
}
