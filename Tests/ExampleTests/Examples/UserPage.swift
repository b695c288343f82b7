import Coalescing
import CoalescingPlaces

struct UserQuery: Work {
    let id: Int
    let database: Database

    func begin(_ completion: Completion<[Int: User]>) { database.users([id]) { completion.finish($0) } }
}

@MainActor
final class UserPage {
    let users: OperationQueueManager<Int>
    let database: Database
    private(set) var name: String?
    private var leave: () -> Void = {}

    init(users: OperationQueueManager<Int>, database: Database) {
        self.users = users
        self.database = database
    }

    func open(_ id: Int) {
        let enqueued = users.enqueue(id, waiter: .onMain { self.show($0, id) }) { [database] in
            UserQuery(id: id, database: database)
        }
        leave = { if let token = enqueued.token { enqueued.operation?.leave(token) } }
    }

    func close() { leave() }

    private func show(_ result: Result<[Int: User], OperationError>, _ id: Int) {
        name = (try? result.get())?[id]?.name
    }
}
