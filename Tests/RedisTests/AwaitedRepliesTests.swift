import Repeatable
import Testing

@testable import Redis

/// Which command a reply belongs to.
struct AwaitedRepliesTests {
    private static func entry(deadline: Int64 = .max, sent: Int64 = 0) -> AwaitedReplies.Entry {
        AwaitedReplies.Entry(completion: { _ in }, sent: sent, deadline: deadline, isOwn: false)
    }

    @Test func `a late command keeps its place`() {
        var awaited = AwaitedReplies()
        for deadline in [10, 30, 20] as [Int64] { awaited.append(Self.entry(deadline: deadline, sent: deadline - 10)) }
        let before = (awaited.nextDeadline, awaited.oldest)
        #expect(before == (10, 0))
        let late = awaited.takeLate(at: 20).map(\.deadline)
        let after = (awaited.count, awaited.nextDeadline, awaited.takeLate(at: 20).count)
        #expect(late == [10, 20] && after == (3, 30, 0))
        let first = awaited.popFirst()
        let second = awaited.popFirst()
        #expect(first?.completion == nil && first?.deadline == 10)
        #expect(second?.completion != nil && second?.deadline == 30)
        let left = (awaited.takeAll().count, awaited.count)
        #expect(left == (0, 0))
    }

    @Test func `a command without a deadline is never late`() {
        var awaited = AwaitedReplies()
        awaited.append(Self.entry(sent: 7))
        let (deadline, oldest, late) = (awaited.nextDeadline, awaited.oldest, awaited.takeLate(at: .max - 1).count)
        #expect(deadline == nil && oldest == 7 && late == 0)
    }

    @Test func `commands and replies pair up, in any turn`() {
        var generator = SeededGenerator(ofTest: 34)
        var awaited = AwaitedReplies()
        var (model, next) = ([Int64](), Int64(0))
        for _ in 0..<20_000 * Rounds.count {
            // More commands than replies for a while, then the other way round.
            let isFilling = next / 3000 % 2 == 0
            if Int.random(in: 0..<10, using: &generator) < (isFilling ? 7 : 3) {
                next += 1
                awaited.append(Self.entry(deadline: next))
                model.append(next)
            } else {
                let deadline = awaited.popFirst()?.deadline
                #expect(deadline == (model.isEmpty ? nil : model.removeFirst()))
            }
            let count = awaited.count
            #expect(count == model.count)
        }
        let left = awaited.takeAll().map(\.deadline)
        #expect(left == model && next > 6000)
    }
}
