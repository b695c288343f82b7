import Coalescing
import Foundation
import Synchronization

/// What the worked example looks up.
struct User: Sendable {
    let name: String
}

/// Answers when told to.
final class Database: Sendable {
    typealias Answer = @Sendable (Result<User, any Error>) -> Void

    let reads = Log<Int>()
    private let asked = Mutex<[Int: Answer]>([:])

    var isIdle: Bool { asked.withLock { $0.isEmpty } }

    func read(_ id: Int, answer: @escaping Answer) {
        reads.append(id)
        asked.withLock { $0[id] = answer }
    }

    func forget(_ id: Int) { asked.withLock { $0[id] = nil } }

    func answer(_ id: Int) {
        asked.withLock { $0.removeValue(forKey: id) }?(.success(User(name: "user \(id)")))
    }

    /// For a read that another thread is about to begin.
    func answer(onceAskedFor id: Int) async {
        while asked.withLock({ $0[id] == nil }) { await Task.yield() }
        answer(id)
    }
}

/// Shows users.
final class Page: Sendable {
    let shown = Log<String>()

    func show(_ result: Result<User, OperationError>) {
        switch result {
        case .success(let user): shown.append(user.name)
        case .failure(let error): shown.append("\(error.name)")
        }
    }
}

extension OperationQueueManager<Int> {
    /// Returns when `count` wait for the query of `id`, without sleeping: their tasks get there by themselves.
    func waiting(_ count: Int, for id: Int) async {
        while operation(for: id, as: UserQuery.self)?.waiterCount != count { await Task.yield() }
    }
}
