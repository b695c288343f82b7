import Coalescing
import Synchronization

/// The library, the actor or the bare minimum: it does a piece of work once for all callers that ask at the same time.
protocol Flights: Sendable {
    func value(for key: Int, work: @escaping @Sendable () async throws -> Int) async throws -> Int
}

extension TenLines: Flights where Key == Int, Value == Int {}
extension Bare: Flights where Key == Int, Value == Int {}

struct LibraryFlights: Flights {
    private let manager = OperationQueueManager<Int>()

    nonisolated(nonsending)
        func value(for key: Int, work: @escaping @Sendable () async throws -> Int) async throws -> Int
    {
        try await manager.value(for: key, work: work)
    }
}

/// The ways of asking that are measured, each `times` times in rounds of a hundred.
extension Flights {
    /// One caller after the other.
    func alone(_ times: Int) async throws {
        for number in 0..<times { _ = try await value(for: number & 63) { number } }
    }

    /// One caller after the other, for work that waits for something.
    func waiting(_ times: Int) async throws {
        for number in 0..<times {
            _ = try await value(for: number & 63) {
                await Task.yield()
                return number
            }
        }
    }

    /// A hundred callers of one key. The work ends when all have come.
    func crowd(_ times: Int) async throws {
        for round in 0..<times / 100 {
            let arrived = Arrived()
            try await together {
                arrived.count()
                return try await value(for: round) {
                    while arrived.total < 100 { await Task.yield() }
                    return round
                }
            }
        }
    }

    /// A hundred callers of a key each.
    func scattered(_ times: Int) async throws {
        for _ in 0..<times / 100 {
            let arrived = Arrived()
            try await together {
                let number = arrived.count()
                return try await value(for: number) {
                    await Task.yield()
                    return number
                }
            }
        }
    }

    private func together(_ caller: @escaping @Sendable () async throws -> Int) async throws {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<100 { group.addTask { try await caller() } }
            for try await _ in group {}
        }
    }
}

private final class Arrived: Sendable {
    private let number = Atomic(0)
    var total: Int { number.load(ordering: .relaxed) }

    @discardableResult
    func count() -> Int { number.add(1, ordering: .relaxed).newValue }
}
