import Synchronization
import Testing

@testable import Proxy

@Suite struct MemoryLineTests {
    private let line = MemoryLine()

    private func enter(
        _ need: MemoryLine.Need, since: Int64 = 0, wake: @escaping @Sendable () -> Void = {}
    ) -> MemoryWait {
        MemoryWait(for: need, since: since, in: line, wake: wake)
    }

    private func goes(_ place: MemoryWait?, _ need: MemoryLine.Need, at now: Int64 = 1) -> Bool {
        line.letsThrough(place, for: need, at: now)
    }

    @Test(arguments: [MemoryLine.Need.body, .head])
    func `a newcomer waits while one of its kind is in the line`(_ need: MemoryLine.Need) {
        #expect(goes(nil, need))
        var place: MemoryWait? = enter(need)
        #expect(!goes(nil, need) && goes(place, need))
        place = nil
        #expect(goes(nil, need))
    }

    @Test func `a body that goes on does not wait behind heads`() {
        let head = enter(.head)
        #expect(goes(nil, .body))
        withExtendedLifetime(head) {}
    }

    @Test func `a body that has waited for long takes precedence over heads`() {
        let head = enter(.head)
        var body: MemoryWait? = enter(.body, since: 10)
        let (young, old) = (9 + MemoryLine.bodyPatience, 10 + MemoryLine.bodyPatience)
        #expect(goes(head, .head, at: young) && !goes(head, .head, at: old) && goes(body, .body, at: old))
        body = nil
        #expect(goes(head, .head, at: old))
    }

    @Test func `a body that has waited for long takes precedence over a new head`() {
        let body = enter(.body, since: 10)
        #expect(
            goes(nil, .head, at: 9 + MemoryLine.bodyPatience) && !goes(nil, .head, at: 10 + MemoryLine.bodyPatience))
        withExtendedLifetime(body) {}
    }

    @Test(arguments: [MemoryLine.Need.body, .head])
    func `the first of a kind get memory first, in the order in which they came`(_ need: MemoryLine.Need) {
        var places = (0..<MemoryLine.front * 2).map { _ -> MemoryWait? in enter(need) }
        func through() -> [Int] { places.indices.filter { places[$0] != nil && goes(places[$0], need) } }
        #expect(through() == Array(0..<MemoryLine.front))
        // One that is served, and one that gives up further behind.
        places[3] = nil
        places[MemoryLine.front + 1] = nil
        #expect(through() == Array(0...MemoryLine.front).filter { $0 != 3 })
    }

    @Test(arguments: [MemoryLine.Need.body, .head])
    func `a waiter that gets memory wakes the first of the others`(_ need: MemoryLine.Need) {
        let woken = Woken()
        line.wakeFirst(need)
        var places = (0..<3).map { number -> MemoryWait? in enter(need, wake: { woken.append(number) }) }
        // Who leaves wakes nobody: it may not have found any.
        places[0] = nil
        #expect(woken.numbers == [])
        line.wakeFirst(need)
        line.wakeFirst(need)
        places[1] = nil
        line.wakeFirst(need)
        #expect(woken.numbers == [1, 1, 2])
        places[2] = nil
        line.wakeFirst(need)
        #expect(woken.numbers.count == 3)
    }
}

private final class Woken: Sendable {
    private let list = Mutex<[Int]>([])
    var numbers: [Int] { list.withLock { $0 } }
    func append(_ number: Int) { list.withLock { $0.append(number) } }
}
