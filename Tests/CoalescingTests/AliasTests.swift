import Testing

@testable import Coalescing

/// One operation under several identifiers.
struct AliasTests {
    let manager = OperationQueueManager<String>()
    let log = Log<Outcome>()

    private func enqueue(_ identifier: String) -> Enqueued<ManualOperation, Never> {
        manager.enqueue(identifier, waiter: .logging(to: log)) { ManualOperation(identifier) }
    }

    @Test func `an operation is joined under its alias`() throws {
        let operation = try #require(enqueue("a").operation)
        #expect(manager.addAlias(operation, for: "b"))
        #expect(manager.addAlias(operation, for: "b"))
        #expect(enqueue("b").operation === operation)
        operation.finish(.success(1))
        #expect(log.entries == [.value(1), .value(1)])
    }

    @Test func `an alias is removed when its operation ends`() throws {
        let operation = try #require(enqueue("a").operation)
        manager.addAlias(operation, for: "b")
        operation.finish(.success(1))
        #expect(enqueue("a").isStarted)
        #expect(enqueue("b").isStarted)
        #expect(!manager.addAlias(operation, for: "c"))
    }

    @Test func `an alias does not replace an operation in flight`() throws {
        let operation = try #require(enqueue("a").operation)
        let other = try #require(enqueue("b").operation)
        #expect(!manager.addAlias(operation, for: "b"))
        #expect(enqueue("b").operation === other)
    }

    @Test func `an alias replaces a closed operation, and stays when that operation ends`() throws {
        let operation = try #require(enqueue("a").operation)
        let other = try #require(enqueue("b").operation)
        other.close()
        #expect(manager.addAlias(operation, for: "b"))
        other.finish(.success(1))
        #expect(enqueue("b").operation === operation)
    }

    @Test func `an operation of another manager gets no alias`() throws {
        let foreign = try #require(
            OperationQueueManager<String>().enqueue("a", waiter: nil, make: { ManualOperation() }).operation)
        #expect(!manager.addAlias(foreign, for: "b"))
        #expect(!manager.addAlias(ManualOperation(), for: "b"))
        foreign.cancel()
    }
}
