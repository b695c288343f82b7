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
    func call() { waiter.handler?(result) }
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
        if callback.waiter.handler == nil { return }
        if first == nil { first = consume callback } else { others.append(consume callback) }
    }
}

/// The callbacks of one event: one `enqueue` for each queue, however many waiters use that queue. Each queue calls them
/// in the order in which the waiters joined.
@usableFromInline
enum WakeUps: Sendable {
    case none
    /// The callbacks of one queue, apart from the others for the same reason as in `Callbacks`.
    case one(any CallbackQueue, @Sendable () -> Void)
    case several([WakeUps])

    @inlinable
    init<Value>(_ callbacks: consuming Callbacks<Value>) {
        self = .none
        guard let first = callbacks.first.take() else { return }
        if callbacks.others.isEmpty {
            let (handler, result) = (first.waiter.handler, first.result)
            self = .one(first.queue) { handler?(result) }
        } else {
            self = .of(first, callbacks.others)
        }
    }

    @inlinable
    static func of<Value>(_ first: Callback<Value>, _ others: [Callback<Value>]) -> WakeUps {
        if others.allSatisfy({ $0.queue === first.queue }) {
            return .one(first.queue) {
                first.call()
                for callback in others { callback.call() }
            }
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
        return .several(
            groups.map { group in
                .one(group[0].queue) {
                    for callback in group { callback.call() }
                }
            })
    }

    /// Sends each batch to its queue. Never under a lock: an inline queue calls the handlers at once.
    @usableFromInline
    func send() {
        switch self {
        case .none: break
        case .one(let queue, let run): queue.enqueue(run)
        case .several(let wakeUps): for wakeUp in wakeUps { wakeUp.send() }
        }
    }
}
