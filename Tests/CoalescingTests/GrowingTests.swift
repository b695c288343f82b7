import Testing

@testable import Coalescing
@testable import CoalescingPlaces

/// A value that goes on growing, and its readers.
struct GrowingTests {
    let manager = OperationQueueManager<String>()

    private func read(_ elements: some AsyncSequence<Int, any Error>) async throws -> [Int] {
        var read: [Int] = []
        for try await element in elements { read.append(element) }
        return read
    }

    @Test func `a reader follows from the start or from now, to the end`() async throws {
        let growing = Growing<Int>()
        growing.append(1)
        let (all, rest) = (growing.elements(), growing.elements(from: .now))
        growing.append(2)
        growing.end()
        growing.append(3)
        #expect(try await read(all) == [1, 2])
        #expect(try await read(rest) == [2])
    }

    @Test func `the latest elements are kept, and a reader that falls further back is told`() async throws {
        let growing = Growing<Int>(keeping: 2)
        let slow = growing.elements()
        growing.append(1)
        growing.append(2)
        #expect(growing.keepsStart)
        growing.append(3)
        #expect(!growing.keepsStart)
        growing.end()
        await #expect(throws: GrowingError.behind) { try await read(slow) }
        #expect(try await read(growing.elements(from: .now)) == [])
    }

    /// A sequence of the numbers from 0, of which each is ready.
    private func counted(_ count: Int) -> AsyncStream<Int> {
        AsyncStream { writer in
            for number in 0..<count { writer.yield(number) }
            writer.finish()
        }
    }

    @Test func `a sole reader gets every element of a long sequence that is ready`() async throws {
        let all = manager.elements(for: "a", keeping: 16) { [self] in counted(3_000) }
        #expect(try await read(all) == Array(0..<3_000))
    }

    @Test func `the caller that leads from now misses nothing`() async throws {
        let all = manager.elements(for: "a", from: .now) { [self] in counted(3) }
        #expect(try await read(all) == [0, 1, 2])
    }

    @Test(.timeLimit(.minutes(10)))
    func `the work goes on for a reader that joins from now when the faster one has left`() async throws {
        let growing = Growing<Int>(keeping: 2)
        growing.append(0)
        growing.append(1)
        let rest = growing.elements(from: .now)
        let writing = Task {
            await growing.waitForRoom()
            growing.append(2)
            growing.end()
        }
        #expect(try await read(rest) == [2])
        await writing.value
    }

    @Test func `after the end, or an error, a reader gets nil and begins no work`() async throws {
        let made = Log<Int>()
        var ended = manager.elements(for: "a") { [self] in
            made.append(1)
            return counted(1)
        }.makeAsyncIterator()
        #expect(try await ended.next(isolation: #isolation) == 0)
        #expect(try await ended.next(isolation: #isolation) == nil)
        #expect(try await ended.next(isolation: #isolation) == nil)
        var failed = manager.elements(for: "b") { () async throws -> AsyncStream<Int> in
            made.append(2)
            throw Broken()
        }.makeAsyncIterator()
        await #expect(throws: Broken.self) { try await failed.next(isolation: #isolation) }
        #expect(try await failed.next(isolation: #isolation) == nil)
        #expect(made.entries == [1, 2])
    }

    @Test func `a reader gets the error with which the value ended, after the elements`() async {
        let growing = Growing<Int>()
        growing.append(1)
        growing.end(throwing: Broken())
        await #expect(throws: Broken.self) { try await read(growing.elements()) }
    }

    @Test func `many callers read one sequence, whoever comes late from the start too`() async throws {
        let made = Log<Int>()
        let (source, writer) = AsyncStream<Int>.makeStream()
        @Sendable func elements() -> some AsyncSequence<Int, any Error> & Sendable {
            manager.elements(for: "a") {
                made.append(1)
                return source
            }
        }
        let readers = (0..<3).map { _ in Task { try await read(elements()) } }
        await followers(3)
        writer.yield(1)
        writer.yield(2)
        let late = Task { try await read(elements()) }
        await followers(4)
        writer.finish()
        for reader in readers + [late] { #expect(try await reader.value == [1, 2]) }
        #expect(made.entries == [1])
        #expect(manager.snapshot.inFlight == 0)
    }

    @Test func `whoever asks from the start when that is gone begins anew`() async throws {
        let (old, new) = (Growing<Int>(keeping: 1), Growing<Int>())
        _ = manager.enqueue("a", waiter: nil) { Growth(old) }
        old.append(1)
        old.append(2)
        new.append(3)
        #expect(try await read(manager.elements(for: "a") { Growth(new, isWhole: true) }) == [3])
        #expect(manager.snapshot.started == 2 && manager.snapshot.replaced == 1)
        manager.cancelAll()
    }

    @Test func `a cancelled reader leaves, and the last one stops the work`() async {
        let stopped = Log<Bool>()
        let readers = (0..<2).map { _ in
            Task {
                try await read(
                    manager.elements(for: "a") {
                        AsyncStream<Int> { $0.onTermination = { _ in stopped.append(true) } }
                    })
            }
        }
        await followers(2)
        readers[0].cancel()
        await #expect(throws: CancellationError.self) { try await readers[0].value }
        await followers(1)
        #expect(stopped.entries.isEmpty)
        readers[1].cancel()
        await #expect(throws: CancellationError.self) { try await readers[1].value }
        while stopped.entries.isEmpty { await Task.yield() }
        #expect(manager.snapshot.cancelled == 1)
    }

    @Test func `a reader that has read enough leaves`() async throws {
        let (source, writer) = AsyncStream<Int>.makeStream()
        let reading = Task { try await manager.elements(for: "a") { source }.first { _ in true } }
        await followers(1)
        writer.yield(5)
        #expect(try await reading.value == 5)
        #expect(manager.snapshot.inFlight == 0 && manager.snapshot.cancelled == 1)
    }

    @Test func `readers of cancelled work get a CancellationError, never an end`() async {
        let reading = Task { try await read(manager.elements(for: "a") { AsyncStream<Int> { _ in } }) }
        await followers(1)
        manager.cancelAll()
        await #expect(throws: CancellationError.self) { try await reading.value }
    }

    @Test func `an error of the work reaches the readers as it is`() async {
        await #expect(throws: Broken.self) {
            try await read(manager.elements(for: "a") { () -> AsyncStream<Int> in throw Broken() })
        }
    }

    private func followers(_ count: Int) async {
        while (manager.operations.first as? CoalescibleOperation<Growing<Int>>)?.waiterCount != count {
            await Task.yield()
        }
    }
}

/// Work that delivers a value which the test appends to.
private final class Growth: Work {
    let growing: Growing<Int>
    let isWhole: Bool
    private let completion = Protected<Completion<Growing<Int>>?>(nil)

    init(_ growing: Growing<Int>, isWhole: Bool = false) { (self.growing, self.isWhole) = (growing, isWhole) }

    func begin(_ completion: Completion<Growing<Int>>) {
        completion.deliver(growing: growing)
        if isWhole { completion.finish() } else { self.completion.withLock { $0 = completion } }
    }
}
