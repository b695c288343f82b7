import Coalescing
import Foundation
import Testing

/// The async face, from wherever a server's code may run.
struct AsyncUseTests {
    @Test func `an actor waits for a value that it makes from its own state`() async throws {
        let pages = Pages()
        async let name = pages.show(7)
        await pages.users.waiting(1, for: 7)
        await pages.database.answer(onceAskedFor: 7)
        #expect(try await name == "user 7")
        #expect(await pages.shown == ["user 7"])
    }

    @Test func `the main actor awaits a value too, and shares the query`() async throws {
        let pages = Pages()
        async let here = Self.showOnMain(7, users: pages.users, database: pages.database)
        async let there = pages.show(7)
        await pages.users.waiting(2, for: 7)
        await pages.database.answer(onceAskedFor: 7)
        #expect(try await [here, there] == ["user 7", "user 7"])
        #expect(pages.database.reads.entries == [7])
    }

    @Test func `an actor gives its work as a closure`() async throws {
        #expect(try await Pages().showWork(7) == "worked 7")
    }

    @Test func `a cancelled task leaves, the others get their value`() async throws {
        let pages = Pages()
        let leaving = Task { try await pages.show(7) }
        async let staying = pages.show(7)
        await pages.users.waiting(2, for: 7)
        leaving.cancel()
        await #expect(throws: CancellationError.self) { try await leaving.value }
        await pages.users.waiting(1, for: 7)
        await pages.database.answer(onceAskedFor: 7)
        #expect(try await staying == "user 7")
    }

    @Test func `an operation that only a cancelled task awaited is stopped, if its policy says so`() async throws {
        let pages = Pages()
        let leaving = Task { try await pages.show(7) }
        await pages.users.waiting(1, for: 7)
        leaving.cancel()
        await #expect(throws: CancellationError.self) { try await leaving.value }
        #expect(pages.users.operation(for: 7, as: UserQuery.self) == nil)
        #expect(pages.users.snapshot.cancelled == 1)
        #expect(pages.database.isIdle)
    }

    /// Without its class being named, as which Swift would infer `CoalescibleOperation` if that were the constraint.
    @MainActor
    @Test func `the closure that makes an operation may have several statements`() async throws {
        let page = MainPage(users: OperationQueueManager(), database: Database())
        async let name = page.show(7)
        await page.users.waiting(1, for: 7)
        await page.database.answer(onceAskedFor: 7)
        #expect(try await name == "user 7")
        #expect(page.queriesMade == 1)
    }

    @MainActor
    private static func showOnMain(_ id: Int, users: OperationQueueManager<Int>, database: Database) async throws
        -> String
    {
        let page = MainPage(users: users, database: database)
        return try await page.show(id)
    }
}

/// Not `Sendable`: what it makes operations from never leaves the main actor.
@MainActor
private final class MainPage {
    let users: OperationQueueManager<Int>
    let database: Database
    private(set) var queriesMade = 0

    init(users: OperationQueueManager<Int>, database: Database) {
        self.users = users
        self.database = database
    }

    func show(_ id: Int) async throws -> String {
        let user = try await users.value(for: id) {
            queriesMade += 1
            return UserQuery(id: id, database: database)
        }
        return user.name
    }
}

private actor Pages {
    let users = OperationQueueManager<Int>()
    let database = Database()
    private(set) var shown: [String] = []

    func show(_ id: Int) async throws -> String {
        let user = try await users.value(for: id) { UserQuery(id: id, database: database) }
        shown.append(user.name)
        return user.name
    }

    func showWork(_ id: Int) async throws -> String {
        let user = try await users.value(for: id) { User(name: "worked \(id)") }
        return user.name
    }
}
