import Testing

@testable import Coalescing

/// Each waiter is called where it lives, and each place is woken once.
struct WakeUpTests {
    @Test func `a thousand waiters on four queues cost four wake-ups`() {
        let operation = ManualOperation()
        let queues = (0..<4).map { _ in ManualQueue() }
        let orders = (0..<4).map { _ in Log<Int>() }
        for number in 0..<1000 {
            let order = orders[number % 4]
            _ = operation.join(Waiter(on: queues[number % 4]) { _ in order.append(number) })
        }
        operation.start()
        operation.deliver(1)
        #expect(queues.map(\.wakeUps) == [1, 1, 1, 1])
        #expect(orders.allSatisfy { $0.entries.isEmpty })
        for queue in queues { queue.run() }
        #expect(orders.map(\.entries.count) == [250, 250, 250, 250])
        operation.finish()
        #expect(queues.map(\.wakeUps) == [1, 1, 1, 1])
    }

    @Test func `waiters of one queue are called in the order in which they joined, also after some left`() throws {
        let operation = ManualOperation()
        let order = Log<Int>()
        let queue = ManualQueue()
        var tokens: [WaiterToken] = []
        for number in 0..<6 {
            tokens.append(try #require(operation.join(Waiter(on: queue) { _ in order.append(number) }).token))
        }
        for gone in [4, 0, 2] { operation.leave(tokens[gone]) }
        for number in 6..<9 { _ = operation.join(Waiter(on: queue) { _ in order.append(number) }) }
        operation.finish(.success(1))
        queue.run()
        #expect(order.entries == [1, 3, 5, 6, 7, 8])
    }

    @Test func `a handler may leave, join and ask again from inside its call`() {
        let operation = ManualOperation()
        let log = Log<Outcome>()
        let queue = ManualQueue()
        _ = operation.join(
            Waiter(on: queue) { [unowned operation] _ in
                _ = operation.join(.logging(to: log, on: queue))
            })
        operation.start()
        operation.deliver(2)
        queue.run()
        queue.run()
        #expect(log.entries == [.value(2)])
    }

    @Test func `no handler runs on the stack that finishes the operation`() {
        let operation = ManualOperation()
        let queue = ManualQueue()
        let calledThere = Log<Bool>()
        _ = operation.join(Waiter(on: queue) { _ in calledThere.append(queue.isRunning) })
        operation.start()
        operation.finish(.success(1))
        #expect(calledThere.entries.isEmpty)
        queue.run()
        #expect(calledThere.entries == [true])
    }
}
