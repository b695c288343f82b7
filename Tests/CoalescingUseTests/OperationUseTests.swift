import Coalescing
import CoalescingPlaces
import Foundation
import Testing

/// Observers, dependencies and tasks.
struct OperationUseTests {
    let database = Database()
    let notices = Log<String>()

    private func users() -> OperationQueueManager<Int> {
        let observer = OperationObserver(of: .finished, .cancelled) { [notices] notice in
            notices.append("\(notice.phase)" + (notice.error.map { " \($0.name)" } ?? ""))
        }
        return OperationQueueManager(observers: [observer])
    }

    @Test func `an observer of the manager is called with the end of each operation`() {
        let users = users()
        let queries = [1, 2].map { id in
            users.enqueue(id, waiter: nil) { UserQuery(id: id, database: database) }.operation
        }
        database.answer(1)
        queries[1]?.cancel()
        #expect(notices.entries == ["finished", "cancelled cancelled"])
    }

    @Test func `an observer may ask for every phase and for a queue of its own`() {
        let loop = ManualQueue()
        let query = UserQuery(id: 7, database: database)
        query.add(
            OperationObserver(on: loop) { [notices] in
                notices.append("\($0.phase) \(($0.operation as? UserQuery)?.id ?? 0)")
            })
        query.start()
        database.answer(7)
        #expect(notices.entries.isEmpty)
        loop.run()
        #expect(notices.entries == ["ready 7", "executing 7", "finished 7"])
    }

    @Test func `a task makes work of the value of its dependency, which is shared`() async throws {
        let (users, greetings) = (users(), OperationQueueManager<String>())
        let got = Log<String>()
        for language in ["en", "de"] {
            let task = OperationTask(after: { users.enqueue(7, waiter: nil) { UserQuery(id: 7, database: database) } })
            {
                Greeting(user: $0, language: language)
            }
            let waiter = Waiter<String>(on: InlineQueue.shared) { got.append((try? $0.get()) ?? "none") }
            #expect(greetings.enqueue(language, waiter: waiter, task: task).operation?.phase == .pending)
        }
        database.answer(7)
        while got.entries.count < 2 { await Task.yield() }
        #expect(Set(got.entries) == ["en user 7", "de user 7"])
        #expect(database.reads.entries == [7])
    }

    @Test func `an operation fails when its dependency fails`() {
        let (first, second) = (PlainOperation { $0.finish(Broken()) }, PlainOperation { $0.finish() })
        #expect(second.addDependency(first))
        second.start()
        first.start()
        guard case .dependency(.failed(let error)) = second.error else { return _ = Issue.record("no cause") }
        #expect(error is Broken)
    }

    /// `Foundation.Operation` is another class.
    @Test func `operations of every kind stand in one array`() {
        let users = users()
        _ = users.enqueue(plain: PlainOperation())
        _ = users.enqueue(7, waiter: nil) { UserQuery(id: 7, database: database) }
        let operations: [AnyOperation] = users.operations
        #expect(operations.count == 2)
        users.cancelAll()
        #expect(users.operations.isEmpty)
    }

    /// With an actor the conformance that the compiler advised compiled, and aborted here.
    @Test func `an operation conforms to a protocol, whose methods every thread may call`() async {
        let described: any CustomStringConvertible & Sendable = Described()
        #expect(await Task.detached { described.description }.value == "described")
    }

    @Test func `dropping a completion abandons the work`() async {
        let users = OperationQueueManager<Int>()
        await #expect {
            try await users.value(for: 7) { Forgetful() }
        } throws: { error in
            if case .abandoned = error as? OperationError { true } else { false }
        }
    }
}

private struct Broken: Error {}

private struct Greeting: Work {
    let user: User
    let language: String

    func begin(_ completion: Completion<String>) {
        completion.finish(.success("\(language) \(user.name)"))
    }
}

private final class Described: CoalescibleOperation<Int>, CustomStringConvertible, @unchecked Sendable {
    var description: String { "described" }
}

/// Loses track of its work.
private struct Forgetful: Work {
    func begin(_ completion: Completion<User>) {}
}
