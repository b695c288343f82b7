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
    @Test func `three retries at a time are allowed, more only as a share of the requests`() {
        let budget = RetryBudget(percent: 10)
        let allowed = (0..<5).map { _ in budget.begin(at: 0) }
        #expect(allowed == [true, true, true, false, false])
        #expect(budget.retriesInFlight == 3)
        for _ in 0..<40 { budget.countRequest(at: 0) }
        // The fourth is a tenth of forty, the fifth is more.
        #expect(budget.begin(at: 0))
        #expect(!budget.begin(at: 0))
        for _ in 0..<4 { budget.ended() }
        #expect(budget.retriesInFlight == 0)
        #expect(budget.begin(at: 0))
    }

    @Test func `what is ten seconds old does not count`() {
        let budget = RetryBudget(percent: 50)
        for _ in 0..<100 { budget.countRequest(at: 0) }
        for _ in 0..<4 {
            let isAllowed = budget.begin(at: 0)
            #expect(isAllowed)
        }
        #expect(!budget.begin(at: 10_000_000_000))
    }

    @Test func `a budget of nothing still allows three at a time`() {
        let budget = RetryBudget(percent: 0)
        for _ in 0..<1000 { budget.countRequest(at: 0) }
        #expect((0..<4).map { _ in budget.begin(at: 0) } == [true, true, true, false])
    }
}
