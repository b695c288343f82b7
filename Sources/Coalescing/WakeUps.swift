/// One handler that is due, with what it is due.
@usableFromInline
struct Callback<Value: Sendable>: Sendable {
    // The whole waiter, so that nothing a user's closure holds is let go of under the lock that made this.
    let waiter: Waiter<Value>
    let result: Result<Value, OperationError>

    init(_ waiter: Waiter<Value>, _ result: Result<Value, OperationError>) {
        self.waiter = waiter
        self.result = result
    }

    var queue: any CallbackQueue { waiter.queue }

    func call() { waiter.handler(result) }

    var isReleased: Bool {
        if case .failure(.released) = result { true } else { false }
    }
}

/// The callbacks of one event, one `enqueue` for each queue however many waiters live there. They are called there in the order in
/// which they joined.
struct WakeUps: Sendable {
    private struct Batch: Sendable {
        let queue: any CallbackQueue
        let run: @Sendable () -> Void
    }

    private var batches: [Batch] = []

    static var none: WakeUps { WakeUps() }

    private init() {}

    init<Value>(_ callbacks: [Callback<Value>]) {
        guard let first = callbacks.first else { return }
        if callbacks.allSatisfy({ $0.queue === first.queue }) {
            batches = [Self.batch(of: callbacks, on: first.queue)]
            return
        }
        var places: [ObjectIdentifier: Int] = [:]
        var groups: [[Callback<Value>]] = []
        for callback in callbacks {
            let place = places[ObjectIdentifier(callback.queue), default: groups.count]
            if place == groups.count {
                places[ObjectIdentifier(callback.queue)] = place
                groups.append([])
            }
            groups[place].append(callback)
        }
        batches = groups.compactMap { group in group.first.map { Self.batch(of: group, on: $0.queue) } }
    }

    private static func batch<Value>(of callbacks: [Callback<Value>], on queue: any CallbackQueue) -> Batch {
        if callbacks.count == 1, let only = callbacks.first {
            return Batch(queue: queue) { only.call() }
        }
        return Batch(queue: queue) {
            for callback in callbacks { callback.call() }
        }
    }

    /// Never under a lock: an inline queue calls the handlers here and now.
    func send() {
        for batch in batches { batch.queue.enqueue(batch.run) }
    }
}
