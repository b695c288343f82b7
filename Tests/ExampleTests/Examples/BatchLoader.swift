import Coalescing
import CoalescingPlaces

/// Users by number. What is asked for within a millisecond is one query, and each number is in it once.
struct UserLoader {
    struct Lookup: Work {
        let id: Int
        let batch: CoalescingExecutor<[Int: Completion<User?>]>

        func begin(_ completion: Completion<User?>) { batch.add([id: completion]) }
    }

    let lookups = OperationQueueManager<Int>()
    let batch: CoalescingExecutor<[Int: Completion<User?>]>

    init(database: Database, timers: any TimerSource = ClockTimers(ContinuousClock())) {
        batch = CoalescingExecutor(
            coalesceWait: .milliseconds(1), maxWait: .milliseconds(1), timers: timers, on: InlineQueue.shared,
            combine: { $0.merge($1) { $1 } },
            act: { lookups in
                database.users(Array(lookups.keys)) { users in
                    for (id, lookup) in lookups { lookup.finish(users.map { $0[id] }) }
                }
            })
    }

    func user(_ id: Int) async throws -> User? {
        try await lookups.value(for: id) { Lookup(id: id, batch: batch) }
    }
}
