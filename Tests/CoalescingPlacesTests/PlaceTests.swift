import Coalescing
import CoalescingDispatch
import CoalescingFoundation
import CoalescingPlaces
import Dispatch
import Foundation
import Testing

/// Waiters are called back where they live, in their order.
struct PlaceTests {
    private let numbers = OperationQueueManager<Int>()

    @Test func `a dispatch queue calls back its waiters`() {
        let queue = DispatchQueue(label: "pages")
        let isPages = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: isPages, value: true)
        let called = Log<String>()
        ask(3) { place in
            Waiter(on: queue) { result in
                called.append("\(place): \(result) on \(DispatchQueue.getSpecific(key: isPages) ?? false)")
            }
        }
        queue.sync {}
        #expect(called.entries == (0..<3).map { "\($0): success(7) on true" })
    }

    @Test func `an operation queue calls back its waiters`() {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let called = Log<String>()
        ask(3) { place in
            Waiter(on: queue) { [unowned queue] result in
                called.append("\(place): \(result) on \(OperationQueue.current === queue)")
            }
        }
        queue.waitUntilAllOperationsAreFinished()
        #expect(called.entries == (0..<3).map { "\($0): success(7) on true" })
    }

    @Test func `a class of the main actor is called back on it`() async {
        let page = await MainActor.run { Page(numbers) }
        await page.ask(times: 3)
        let number = numbers.operation(for: 7, as: Number.self)
        #expect(number?.waiterCount == 3)
        Self.$caller.withValue("whoever ends the work") { _ = number?.finish(.success(7)) }
        await page.isComplete()
        await #expect(
            page.shown == ["0: success(7) for nobody", "1: success(7) for nobody", "2: success(7) for nobody"])
    }

    @Test func `the main queue keeps the order of its callbacks`() async {
        let (numbers, called) = AsyncStream<Int>.makeStream()
        for number in 0..<100 {
            MainQueue.shared.enqueue {
                MainActor.assertIsolated()
                called.yield(number)
            }
        }
        MainQueue.shared.enqueue { called.finish() }
        #expect(await numbers.reduce(into: []) { $0.append($1) } == Array(0..<100))
    }

    @TaskLocal static var caller = "nobody"

    /// Lets `count` waiters join, then ends the work.
    private func ask(_ count: Int, waiter: (Int) -> Waiter<Int>?) {
        let work = (0..<count).compactMap { numbers.enqueue(7, waiter: waiter($0)) { Number() }.operation }
        work.first?.finish(.success(7))
    }
}

private final class Number: CoalescibleOperation<Int>, @unchecked Sendable {}

/// Not `Sendable`: all that it holds is the main actor's.
@MainActor
private final class Page {
    private(set) var shown: [String] = []
    private let numbers: OperationQueueManager<Int>
    private var expected = 0
    private var complete: CheckedContinuation<Void, Never>?

    init(_ numbers: OperationQueueManager<Int>) { self.numbers = numbers }

    func ask(times: Int) {
        expected = times
        for place in 0..<times {
            _ = numbers.enqueue(7, waiter: .onMain { self.show($0, at: place) }) { Number() }
        }
    }

    private func show(_ result: Result<Int, OperationError>, at place: Int) {
        shown.append("\(place): \(result) for \(PlaceTests.caller)")
        if shown.count == expected { complete?.resume() }
    }

    func isComplete() async {
        if shown.count < expected { await withCheckedContinuation { complete = $0 } }
    }
}
