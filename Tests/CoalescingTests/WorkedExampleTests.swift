import Testing

@testable import Coalescing

/// The example of `Coalescing.docc/Coalescing.md`, word for word where it says something about the library.
struct WorkedExampleTests {
    let database = Database()
    let loop = ManualQueue()
    let page = Page()
    let users: OperationQueueManager<Int>

    init() {
        var settings = OperationQueueManager<Int>.Settings()
        settings.maxConcurrent = 2
        users = OperationQueueManager<Int>(settings: settings)
    }

    private func ask(_ id: Int) -> Enqueued<UserQuery, Never> {
        let waiter = Waiter<User>(on: loop) { [page] result in page.show(result) }
        return users.enqueue(id, waiter: waiter) { UserQuery(id: id, database: database) }
    }

    @Test func `three who ask at once cost one query, and each is called where it lives`() {
        let asked = (0..<3).map { _ in ask(7) }
        #expect(asked.map(\.isStarted) == [true, false, false])
        #expect(database.reads.entries == [7])
        database.answer(7)
        #expect(page.shown.entries.isEmpty)
        loop.run()
        #expect(page.shown.entries == ["user 7", "user 7", "user 7"])
        #expect(loop.wakeUps == 1)
    }

    @Test func `who leaves is not called, the others are`() {
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
        while users.operation(for: 7, as: UserQuery.self)?.waiterCount != 2 { await Task.yield() }
        database.answer(7)
        #expect(try await user.name == "user 7")
        #expect(database.reads.entries == [7])
    }

    @Test func `a cancelled query is forgotten by the database`() {
        ask(7).operation?.cancel()
        loop.run()
        #expect(page.shown.entries == ["cancelled"])
        #expect(database.isIdle)
    }
}

struct User: Sendable {
    let name: String
}

final class UserQuery: CoalescibleOperation<User> {
    let id: Int
    let database: Database

    nonisolated init(id: Int, database: Database) {
        self.id = id
        self.database = database
        super.init(identifier: id)
    }

    override func execute() {
        database.read(id) { self.finish($0) }
    }

    override func cancelWork() {
        database.forget(id)
    }
}

/// Answers when told to.
final class Database: Sendable {
    typealias Answer = @Sendable (Result<User, any Error>) -> Void

    let reads = Log<Int>()
    private let asked = Protected<[Int: Answer]>([:])

    var isIdle: Bool { asked.withLock { $0.isEmpty } }

    func read(_ id: Int, answer: @escaping Answer) {
        reads.append(id)
        asked.withLock { $0[id] = answer }
    }

    func forget(_ id: Int) { asked.withLock { $0[id] = nil } }

    func answer(_ id: Int) {
        asked.withLock { $0.removeValue(forKey: id) }?(.success(User(name: "user \(id)")))
    }
}

final class Page: Sendable {
    let shown = Log<String>()

    func show(_ result: Result<User, OperationError>) {
        switch result {
        case .success(let user): shown.append(user.name)
        case .failure(let error): shown.append("\(error.name)")
        }
    }
}
