/// Work that many callers share, as a type of your own: how it begins, and how it stops. It needs no superclass. What it
/// stores, every thread may use; the compiler checks that, as for any `Sendable` type.
///
///     struct UserQuery: Work {
///         let id: Int, database: Database
///
///         func begin(_ completion: Completion<User>) { database.read(id) { completion.finish($0) } }
///         func stop() { database.forget(id) }
///     }
///
/// The manager makes a `WorkOperation` of it. Callers with equal identifiers and the same type of work share one.
public protocol Work<Value>: Sendable {
    /// What the callers get.
    associatedtype Value: Sendable

    /// Begins the work and returns soon. Called once: on the stack of the caller that led if a slot is free, otherwise
    /// in a task of that caller. So it runs with the task-local values of that caller, and so do the tasks that it
    /// makes.
    func begin(_ completion: Completion<Value>)

    /// Stops the work that `begin` began. Called at most once, after `begin` has returned, on the thread that cancelled.
    /// The work has ended by then: what it still says to its completion is ignored. By default nothing is done.
    func stop()

    /// The fate of the work when its last caller leaves: `.cancel` unless the type says otherwise.
    var lastLeavePolicy: LastLeavePolicy { get }
}

extension Work {
    public func stop() {}
    public var lastLeavePolicy: LastLeavePolicy { .cancel }
}

/// The duty to end one piece of work, for whoever does it: a closure, a task, an object. Any thread. If the last
/// reference goes without `finish`, the callers get `.abandoned`: they never wait for work that was forgotten.
///
/// (Work that stores its own completion forgets nothing: it and the completion keep each other.)
public final class Completion<Value: Sendable>: Sendable {
    @usableFromInline let operation: CoalescibleOperation<Value>

    /// Takes on the duty for an operation of a subclass.
    @inlinable
    public init(_ operation: CoalescibleOperation<Value>) {
        self.operation = operation
    }

    @inlinable
    deinit {
        if !operation.hasEnded { abandon() }
    }

    @usableFromInline
    func abandon() { operation.finish(.failure(OperationError.abandoned)) }

    /// Whether the outcome is decided. A long computation reads this to learn that it was cancelled.
    @inlinable
    public var hasEnded: Bool { operation.hasEnded }

    /// Hands out a value that goes on growing: see `CoalescibleOperation.deliver(_:)`.
    @discardableResult
    @inlinable
    public func deliver(_ value: Value) -> Bool { operation.deliver(value) }

    /// Ends the work with its result: see `CoalescibleOperation.finish(_:)`.
    @discardableResult
    @inlinable
    public func finish(_ result: Result<Value, any Error>) -> Bool { operation.finish(result) }

    /// Ends work whose value was delivered: see `CoalescibleOperation.finish()`.
    @discardableResult
    @inlinable
    public func finish() -> Bool { operation.finish() }
}

/// The operation that a manager makes of some `Work`.
///
/// It begins where its leader is: on the leader's stack, or in a task of the leader that waits for the slot, never on
/// the stack of whoever frees the slot, since the task-local values there are not the leader's.
public final class WorkOperation<W: Work>: CoalescibleOperation<W.Value>, @unchecked Sendable {
    @usableFromInline
    enum Plan: Sendable {
        case work(W)
        /// The work is made of what others have brought.
        case dependent(DependentWork<W>)
    }

    @usableFromInline let plan: Plan
    private let start = Protected(LedStart.entering)

    @inlinable
    init(_ plan: Plan) {
        self.plan = plan
        super.init()
        if case .work(let work) = plan { lastLeavePolicy = work.lastLeavePolicy }
    }

    public override func cancelWork() {
        switch plan {
        case .work(let work): work.stop()
        case .dependent(let dependent): dependent.work?.stop()
        }
    }

    override func handOver() -> Bool {
        let (isElsewhere, waiting) = start.withLock { $0.grant() }
        waiting?.resume()
        return isElsewhere
    }

    /// Begins the work here if it has its slot, otherwise in a task. Called once, by the caller that led, without a
    /// lock. Inlinable, and so is what it calls: a method that overrides another cannot be specialized for `W`.
    @inlinable
    func lead() {
        beginLed { [self] in
            switch plan {
            case .work(let work):
                work.begin(Completion(self))
            case .dependent(let dependent):
                guard let work = dependent.make() else { return _ = finish() }
                lastLeavePolicy = work.lastLeavePolicy
                work.begin(Completion(self))
            }
        }
    }

    @usableFromInline
    func beginLed(_ execute: @escaping @Sendable () -> Void) {
        if start.withLock({ $0.lead() }) { return beginHere(execute) }
        // What ends before it has a slot must not leave its task waiting.
        whenEnded { [weak self] _ in _ = self?.handOver() }
        Task {
            await withCheckedContinuation { continuation in
                if start.withLock({ $0.wait(continuation) }) { continuation.resume() }
            }
            beginHere(execute)
        }
    }

    private func beginHere(_ execute: () -> Void) {
        let gate = state.withLock { $0.enrolment?.gate }
        if begin(execute) { gate?.releaseSlot(of: self) }
    }
}

/// Whether the work of a `WorkOperation` has its slot, and whether its leader knows.
/// ```
/// entering ─grant→ granted ─lead→ begun
///    └─lead→ waiting ─grant→ begun
/// ```
/// *entering*: the leader is inside `enqueue`. *granted*: the slot came meanwhile, and the leader begins the work when it
/// gets there. *waiting*: the leader's task waits for the slot, or will.
private enum LedStart: Sendable {
    case entering
    case granted
    case waiting(CheckedContinuation<Void, Never>?)
    case begun

    /// - Returns: whether the work begins elsewhere, and the task that waits to begin it.
    mutating func grant() -> (Bool, CheckedContinuation<Void, Never>?) {
        switch self {
        case .entering:
            self = .granted
            return (true, nil)
        case .waiting(let continuation):
            self = .begun
            return (true, continuation)
        case .granted, .begun:
            return (false, nil)
        }
    }

    /// - Returns: whether the leader begins the work now.
    mutating func lead() -> Bool {
        if case .granted = self {
            self = .begun
            return true
        }
        self = .waiting(nil)
        return false
    }

    /// - Returns: whether the slot has come already.
    mutating func wait(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        guard case .waiting = self else { return true }
        self = .waiting(continuation)
        return false
    }
}

/// Work given as an `async` closure, in a task that is stopped with the work.
@usableFromInline
final class TaskWork<Value: Sendable>: Work {
    @usableFromInline let work: @Sendable () async throws -> Value
    @usableFromInline let task = Protected<Task<Void, Never>?>(nil)

    @inlinable
    init(_ work: @escaping @Sendable () async throws -> Value) { self.work = work }

    @inlinable
    func begin(_ completion: Completion<Value>) {
        let body: @Sendable () async -> Void = { [work] in
            do {
                completion.finish(.success(try await work()))
            } catch {
                completion.finish(.failure(error))
            }
        }
        // On this stack up to its first wait: to wake another thread costs more than most work.
        let started =
            if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
                Task.immediate(operation: body)
            } else {
                Task(operation: body)
            }
        task.withLock { $0 = started }
    }

    @inlinable
    func stop() { task.withLock { $0 }?.cancel() }
}
