import Repeatable
import Testing

@testable import Coalescing

/// What is in flight, found by the group of its identifier.
struct OperationGroupTests {
    /// Identifiers such as "a1": those with the same letter are of one group.
    private static func group(_ identifier: String) -> Int { Int(identifier.utf8.first ?? 0) }

    let manager = OperationQueueManager<String>(group: { group($0) })

    private func start(_ identifier: String) throws -> ManualOperation {
        try #require(manager.enqueue(identifier, waiter: nil, make: { ManualOperation(identifier) }).operation)
    }

    private func found(_ letter: String) -> [ObjectIdentifier] {
        manager.operations(inGroup: Self.group(letter)).map { ObjectIdentifier($0) }
    }

    @Test func `the operations of a group are found until they end, and no others`() throws {
        let operations = try ["a1", "b1", "a2", "b2", "a3"].map(start)
        #expect(Set(found("a")) == Set([0, 2, 4].map { ObjectIdentifier(operations[$0]) }))
        #expect(found("b").count == 2 && found("c").isEmpty)
        operations[2].finish(.success(1))
        operations[4].cancel()
        #expect(found("a") == [ObjectIdentifier(operations[0])])
        #expect(OperationQueueManager<String>().operations(inGroup: Self.group("a")).isEmpty)
        for operation in operations { operation.cancel() }
        #expect(found("a").isEmpty && found("b").isEmpty)
    }

    @Test func `a queued operation is found in its group, an unshared one is not`() throws {
        manager.maxConcurrent = 1
        let operations = try ["a1", "a2"].map(start)
        let alone = ManualOperation("a3")
        _ = manager.enqueueAloneAtHome(alone)
        #expect(Set(found("a")) == Set(operations.map { ObjectIdentifier($0) }))
        for operation in operations + [alone] { operation.cancel() }
    }

    /// Whether it waits for its slot or not.
    @Test(arguments: [1, 2]) func `an operation for its one waiter alone is found by the group that it is given`(
        _ slots: Int
    ) throws {
        manager.maxConcurrent = slots
        let (first, alone) = (try start("b1"), ManualOperation("a1"))
        #expect(
            manager.enqueueAloneAtHome(alone, group: Self.group("a")).isStarted
                && found("a") == [ObjectIdentifier(alone)])
        for operation in [first, alone] { operation.cancel() }
        #expect(found("a").isEmpty)
    }

    @Test func `an operation is found in the groups of its aliases until it ends`() throws {
        let operation = try start("a1"), other = try start("b1")
        #expect(manager.addAlias(operation, for: "c1"))
        #expect(!manager.addAlias(operation, for: "b1"))
        // Of the group that it entered with.
        #expect(manager.addAlias(operation, for: "a2"))
        let itself = [ObjectIdentifier(operation)]
        #expect(found("a") == itself && found("c") == itself)
        #expect(Set(found("b")) == Set(itself + [ObjectIdentifier(other)]))
        operation.finish(.success(1))
        #expect(found("a").isEmpty && found("c").isEmpty && found("b") == [ObjectIdentifier(other)])
        #expect(!manager.addAlias(operation, for: "d1") && found("d").isEmpty)
        other.cancel()
    }

    @Test func `a grouped list finds the same elements as a dictionary`() {
        var random = SeededGenerator(ofTest: 13)
        var list = GroupedList<Int>()
        var expected: [Int: (group: Int?, token: SlotToken)] = [:]
        for number in 0..<20_000 * Rounds.count {
            if Bool.random(using: &random), let gone = expected.keys.min() {
                let token = expected.removeValue(forKey: gone)?.token ?? .none
                #expect(list.remove(token) == gone && list.remove(token) == nil)
            } else {
                // Few numbers for many, and some that only differ in their upper bits.
                let group = Int.random(in: -1..<50, using: &random)
                let number = number
                let token = list.append(number, group: group < 0 ? nil : group << (group % 3 * 20))
                expected[number] = (list.group(of: token), token)
            }
        }
        #expect(Set(list.elements) == Set(expected.keys) && list.elements.count == expected.count)
        for group in 0..<50 {
            let group = group << (group % 3 * 20)
            #expect(Set(list.elements(inGroup: group)) == Set(expected.filter { $0.value.group == group }.keys))
        }
    }
}
