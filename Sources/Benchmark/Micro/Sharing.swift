import Coalescing
import Foundation
import Synchronization

/// Ten callers ask for the same work: it is done once, and all are called back. With this project's operations, and
/// with Foundation's.
enum Sharing {
    static let joiners = 9

    private final class Work: CoalescibleOperation<Int>, @unchecked Sendable {}

    static func coalescing(_ count: Int, joiners: Int = joiners) {
        let manager = OperationQueueManager<Int>()
        let counter = Counter()
        for number in 0..<count {
            var work: Work?
            for _ in 0...joiners {
                let waiter = Waiter<Int>(on: InlineQueue.shared) { _ in counter.add() }
                work = manager.enqueue(number, waiter: waiter) { Work() }.operation
            }
            work?.finish(.success(number))
        }
        precondition(counter.value == count * (joiners + 1))
    }

    /// Each caller looks for the operation of that name in the queue, or adds it, and makes its own callback depend on
    /// it.
    static func foundation(_ count: Int) {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let counter = Counter()
        for number in 0..<count {
            queue.isSuspended = true
            for _ in 0...joiners {
                let name = "\(number)"
                let work =
                    queue.operations.first { $0.name == name }
                    ?? {
                        let work = BlockOperation {}
                        work.name = name
                        queue.addOperation(work)
                        return work
                    }()
                let callback = BlockOperation { counter.add() }
                callback.addDependency(work)
                queue.addOperation(callback)
            }
            queue.isSuspended = false
            queue.waitUntilAllOperationsAreFinished()
        }
        precondition(counter.value == count * (joiners + 1))
    }

    private final class Counter: Sendable {
        private let count = Atomic<Int>(0)
        func add() { count.add(1, ordering: .relaxed) }
        var value: Int { count.load(ordering: .relaxed) }
    }
}
