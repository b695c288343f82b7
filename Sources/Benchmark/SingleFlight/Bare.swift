import Synchronization

/// The least that keeps this library's promises to `async` callers: a table under a lock; a task of the leader's, which
/// has its task-local values and is cancelled when the last caller has left; for each caller that waits a continuation
/// and a handler for its cancellation; errors as thrown. No limit, no queue, no priorities, no observers, one kind of
/// value. `SingleFlight` measures it to show what is possible.
final class Bare<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private typealias Caller = CheckedContinuation<Value, any Error>

    /// ```
    /// working ─end, last caller leaves→ ended
    /// ```
    private final class Flight: Sendable {
        struct State: Sendable {
            var callers: [Int: Caller] = [:]
            /// The callers so far, which names them.
            var count = 1
            var leaving = 0
            var task: Task<Void, Never>?
            var outcome: Result<Value, any Error>?
        }

        let state = Mutex(State())
    }

    private let inFlight = Mutex<[Key: Flight]>([:])

    nonisolated(nonsending)
        func value(for key: Key, work: @escaping @Sendable () async throws -> Value) async throws -> Value
    {
        try Task.checkCancellation()
        let (flight, number) = inFlight.withLock { table in
            if let flight = table[key] {
                return (
                    flight,
                    flight.state.withLock { state in
                        defer { state.count += 1 }
                        return state.count
                    }
                )
            }
            let flight = Flight()
            table[key] = flight
            return (flight, 0)
        }
        if number == 0 { lead(flight, for: key, work) }
        if let outcome = flight.state.withLock({ $0.outcome }) { return try outcome.get() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { caller in
                let outcome = flight.state.withLock { state -> Result<Value, any Error>? in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if state.outcome == nil { state.callers[number] = caller }
                    return state.outcome
                }
                if let outcome { caller.resume(with: outcome) }
            }
        } onCancel: {
            leave(flight, number, for: key)
        }
    }

    private func lead(_ flight: Flight, for key: Key, _ work: @escaping @Sendable () async throws -> Value) {
        let body: @Sendable () async -> Void = {
            let outcome: Result<Value, any Error>
            do { outcome = .success(try await work()) } catch { outcome = .failure(error) }
            self.remove(flight, for: key)
            let callers = flight.state.withLock { state in
                if state.outcome == nil { state.outcome = outcome }
                defer { state.callers = [:] }
                return state.callers
            }
            for caller in callers.values { caller.resume(with: outcome) }
        }
        let task =
            if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
                Task.immediate(operation: body)
            } else {
                Task(operation: body)
            }
        // The leader waits next, so not all callers can have left yet.
        flight.state.withLock { if $0.outcome == nil { $0.task = task } }
    }

    private func leave(_ flight: Flight, _ number: Int, for key: Key) {
        // With the table's lock: nobody joins work that is about to be cancelled.
        let (caller, task) = inFlight.withLock { table in
            flight.state.withLock { state -> (Caller?, Task<Void, Never>?) in
                state.leaving += 1
                guard state.leaving == state.count, state.outcome == nil else {
                    return (state.callers.removeValue(forKey: number), nil)
                }
                state.outcome = .failure(CancellationError())
                if table[key] === flight { table[key] = nil }
                return (state.callers.removeValue(forKey: number), state.task)
            }
        }
        caller?.resume(throwing: CancellationError())
        task?.cancel()
    }

    private func remove(_ flight: Flight, for key: Key) {
        inFlight.withLock { table in if table[key] === flight { table[key] = nil } }
    }
}
