/// One handler that is due, with its result.
@usableFromInline
struct Callback<Value: Sendable>: Sendable {
    // The whole waiter: no object that a user's closure holds may be released under the operation's lock.
    @usableFromInline let waiter: Waiter<Value>
    @usableFromInline let result: Result<Value, OperationError>

    @inlinable
    init(_ waiter: consuming Waiter<Value>, _ result: consuming Result<Value, OperationError>) {
        self.waiter = waiter
        self.result = result
    }

    @inlinable var queue: any CallbackQueue { waiter.queue }

    @inlinable
    func call() { waiter.handler(result) }
}

/// The callbacks that one event makes due, in the order in which their waiters joined.
@usableFromInline
struct Callbacks<Value: Sendable>: Sendable {
    /// The first callback, stored apart from the others: most operations have one waiter, and then there is no array.
    @usableFromInline var first: Callback<Value>?
    @usableFromInline var others: [Callback<Value>] = []
    /// The number of waiters that get `.released`.
    @usableFromInline var released = 0

    @inlinable
    init() {}

    @inlinable
    mutating func append(_ callback: consuming Callback<Value>, released: Int = 0) {
        self.released += released
        if first == nil { first = consume callback } else { others.append(consume callback) }
    }
}

/// The callbacks of one event: one `enqueue` for each queue, however many waiters use that queue. Each queue calls them
/// in the order in which the waiters joined.
@usableFromInline
struct WakeUps: Sendable {
    @usableFromInline
    struct Batch: Sendable {
        @usableFromInline let queue: any CallbackQueue
        @usableFromInline let run: @Sendable () -> Void

        @inlinable
        init(queue: any CallbackQueue, run: @escaping @Sendable () -> Void) {
            self.queue = queue
            self.run = run
        }
    }

    /// The first batch, stored apart from the others for the same reason as in `Callbacks`.
    @usableFromInline var first: Batch?
    @usableFromInline var others: [Batch] = []

    @inlinable static var none: WakeUps { WakeUps() }

    @inlinable
    init() {}

    @inlinable
    init<Value>(_ callbacks: consuming Callbacks<Value>) {
        guard let first = callbacks.first.take() else { return }
        if callbacks.others.isEmpty {
            let (handler, result) = (first.waiter.handler, first.result)
            self.first = Batch(queue: first.queue) { handler(result) }
        } else {
            add(first, callbacks.others)
        }
    }

    @inlinable
    mutating func add<Value>(_ first: Callback<Value>, _ others: [Callback<Value>]) {
        if others.allSatisfy({ $0.queue === first.queue }) {
            self.first = Batch(queue: first.queue) {
                first.call()
                for callback in others { callback.call() }
            }
            return
        }
        var places: [ObjectIdentifier: Int] = [ObjectIdentifier(first.queue): 0]
        var groups: [[Callback<Value>]] = [[first]]
        for callback in others {
            let place = places[ObjectIdentifier(callback.queue), default: groups.count]
            if place == groups.count {
                places[ObjectIdentifier(callback.queue)] = place
                groups.append([])
            }
            groups[place].append(callback)
        }
        self.others = groups.map { group in
            Batch(queue: group[0].queue) {
                for callback in group { callback.call() }
            }
        }
    }

    /// Sends each batch to its queue. Never under a lock: an inline queue calls the handlers at once.
    @usableFromInline
    func send() {
        if let first { first.queue.enqueue(first.run) }
        for batch in others { batch.queue.enqueue(batch.run) }
    }
}
