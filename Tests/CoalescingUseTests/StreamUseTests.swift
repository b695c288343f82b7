import Coalescing
import CoalescingPlaces
import Foundation
import Testing

/// The example of `Coalescing.docc/Coalescing.md` of a value that goes on growing.
struct StreamUseTests {
    let origin = Origin()
    let downloads = OperationQueueManager<String>()
    let loop = ManualQueue()
    let got = Log<Body>()

    private func ask() -> Enqueued<Download, Never> {
        let waiter = Waiter<Body>(on: loop) { [got] result in
            if case .success(let body) = result { got.append(body) }
        }
        return downloads.enqueue("/news", waiter: waiter) { Download(origin: origin) }
    }

    @Test func `a late joiner gets the whole value`() {
        _ = ask()
        origin.send(.head)
        origin.send(.chunk("a"))
        guard case .joined(_, _, late: true) = ask() else { return _ = Issue.record("not joined late") }
        origin.send(.chunk("b"))
        origin.send(.end)
        loop.run()
        #expect(got.entries.map(\.text) == ["ab", "ab"])
        #expect(origin.calls.entries == ["read"])
    }

    @Test func `a waiter that leaves harms no other, and the last one to leave stops the stream`() throws {
        let (first, second) = (ask(), ask())
        origin.send(.head)
        loop.run()
        let operation = try #require(first.operation)
        #expect(operation.waiterCount == 2)
        // False: it has been called already.
        #expect(!operation.leave(try #require(first.token)))
        #expect(origin.calls.entries == ["read"])
        #expect(!operation.leave(try #require(second.token)))
        #expect(origin.calls.entries == ["read", "stop"])
        #expect(operation.phase == .cancelled)
    }

    @Test func `an early and a late task read the same growing value`() async throws {
        async let early = read()
        await origin.asked()
        origin.send(.head)
        origin.send(.chunk("a"))
        async let late = read()
        await followers(2)
        origin.send(.chunk("b"))
        origin.send(.end)
        #expect(try await [early, late] == ["ab", "ab"])
        #expect(origin.calls.entries == ["read"])
    }

    @Test func `a task that has read enough leaves, and the last one stops the stream`() async throws {
        async let enough = downloads.withValue(for: "/news") {
            Download(origin: origin)
        } body: { body in
            try await body.chunks.first { _ in true }
        }
        async let all = read()
        await followers(2)
        await origin.asked()
        origin.send(.head)
        origin.send(.chunk("a"))
        #expect(try await enough == "a")
        await followers(1)
        #expect(origin.calls.entries == ["read"])
        origin.send(.end)
        #expect(try await all == "a")
    }

    @Test func `a cancelled task that is the only reader stops the stream`() async throws {
        let reading = Task { try await read() }
        await origin.asked()
        origin.send(.head)
        reading.cancel()
        _ = await reading.result
        #expect(origin.calls.entries == ["read", "stop"])
        #expect(downloads.snapshot.inFlight == 0)
    }

    @Test func `a cancelled stream throws to its reader`() async throws {
        let reading = Task { try await read() }
        await origin.asked()
        origin.send(.head)
        origin.send(.chunk("a"))
        downloads.cancelAll()
        await #expect(throws: (any Error).self) { try await reading.value }
    }

    @Test func `an error of the reader is thrown on, and the reader has left`() async throws {
        struct Enough: Error {}
        let reading = Task {
            try await downloads.withValue(for: "/news") {
                Download(origin: origin)
            } body: { _ in
                throw Enough()
            }
        }
        await origin.asked()
        origin.send(.head)
        await #expect(throws: Enough.self) { try await reading.value }
        #expect(origin.calls.entries == ["read", "stop"])
    }

    private func read() async throws -> String {
        let page = Sheet()
        try await downloads.withValue(for: "/news") {
            Download(origin: origin)
        } body: { body in
            for try await chunk in body.chunks { page.append(chunk) }
        }
        return page.text
    }

    private func followers(_ count: Int) async {
        while downloads.operation(for: "/news", as: Download.self)?.waiterCount != count { await Task.yield() }
    }
}

/// Used by one task: what the closure captures need not be `Sendable`.
private final class Sheet {
    private(set) var text = ""
    func append(_ chunk: String) { text += chunk }
}

final class Download: CoalescibleOperation<Body>, @unchecked Sendable {
    let origin: Origin
    let body = Body()

    init(origin: Origin) {
        self.origin = origin
        super.init()
        lastLeavePolicy = .cancel
    }

    override func execute() {
        origin.read { event in
            switch event {
            case .head:
                self.deliver(self.body)
            case .chunk(let chunk):
                self.body.append(chunk)
            case .end:
                // First: a task that has read all leaves, and the last to leave would cancel it.
                self.finish()
                self.body.end()
            }
        }
    }

    override func cancelWork() {
        origin.stop()
        body.breakOff()
    }
}
