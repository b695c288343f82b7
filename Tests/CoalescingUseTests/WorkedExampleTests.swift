import Coalescing
import Foundation
import Testing

/// The example of `Coalescing.docc/Coalescing.md`.
struct WorkedExampleTests {
    let database = Database()
    let loop = ManualQueue()
    let page = Page()
    let users: OperationQueueManager<Int>

    init() {
        users = OperationQueueManager<Int>(maxConcurrent: 2)
    }

    private func ask(_ id: Int) -> Enqueued<UserQuery, Never> {
        let waiter = Waiter<User>(on: loop) { [page] result in page.show(result) }
        return users.enqueue(id, waiter: waiter) { UserQuery(id: id, database: database) }
    }

    @Test func `the example runs as printed`() {
        let loop = DispatchLoop()
        let users = OperationQueueManager<Int>(maxConcurrent: 2)

        let waiter = Waiter<User>(on: loop) { result in page.show(result) }
        let enqueued = users.enqueue(7, waiter: waiter) { UserQuery(id: 7, database: database) }

        database.answer(7)
        // After what the loop was given before.
        loop.queue.sync {}
        #expect(page.shown.entries == ["user 7"])

        if let token = enqueued.token { enqueued.operation?.leave(token) }
    }

    @Test func `the example's line of async code runs as printed`() async throws {
        async let isAnswered: Void = database.answer(onceAskedFor: 7)
        let user = try await users.value(for: 7) { UserQuery(id: 7, database: database) }
        await isAnswered
        #expect(user.name == "user 7")
    }

    /// The example of `OperationQueueManager`.
    @Test func `an enqueue has three results`() {
        let closed = Log<Bool>()
        let waiter = Waiter<User>(on: loop) { result in page.show(result) }
        switch users.enqueue(7, waiter: waiter, make: { UserQuery(id: 7, database: database) }) {
        case .started(let query, let token), .joined(let query, let token, _): closed.append(query.leave(token))
        case .refused(let reason, _): Issue.record("\(reason)")
        }
        #expect(closed.entries == [true])
        #expect(database.isIdle)
    }

    @Test func `three simultaneous callers cost one query, and each is called on its own loop`() {
        let asked = (0..<3).map { _ in ask(7) }
        #expect(asked.map { if case .started = $0 { true } else { false } } == [true, false, false])
        #expect(database.reads.entries == [7])
        database.answer(7)
        #expect(page.shown.entries.isEmpty)
        loop.run()
        #expect(page.shown.entries == ["user 7", "user 7", "user 7"])
        #expect(loop.wakeUps == 1)
    }

    @Test func `a caller that leaves is not called, the others are`() {
        let enqueued = ask(7)
        _ = ask(7)
        if let token = enqueued.token { enqueued.operation?.leave(token) }
        database.answer(7)
        loop.run()
        #expect(page.shown.entries == ["user 7"])
    }

    @Test func `a third query waits for a slot`() {
        for id in [1, 2, 3] { _ = ask(id) }
        #expect(database.reads.entries == [1, 2])
        database.answer(1)
        #expect(database.reads.entries == [1, 2, 3])
    }

    @Test func `async callers share the same query`() async throws {
        _ = ask(7)
        async let user = users.value(for: 7) { UserQuery(id: 7, database: database) }
        await users.waiting(2, for: 7)
        database.answer(7)
        #expect(try await user.name == "user 7")
        #expect(database.reads.entries == [7])
    }

    @Test func `the database forgets a cancelled query`() {
        ask(7).operation?.cancel()
        loop.run()
        #expect(page.shown.entries == ["cancelled"])
        #expect(database.isIdle)
    }
}

final class DispatchLoop: CallbackQueue {
    let queue = DispatchQueue(label: "pages")

    func enqueue(_ callback: @escaping @Sendable () -> Void) {
        queue.async(execute: callback)
    }
}

final class UserQuery: CoalescibleOperation<User>, @unchecked Sendable {
    let id: Int
    let database: Database

    init(id: Int, database: Database) {
        self.id = id
        self.database = database
        super.init()
        lastLeavePolicy = .cancel
    }

    override func execute() {
        database.read(id) { self.finish($0) }
    }

    override func cancelWork() {
        database.forget(id)
    }
}
