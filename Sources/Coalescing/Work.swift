/// Work that many callers share, as a type of your own: how it begins, and how it stops. It needs no superclass. Any
/// thread may use its stored properties; the compiler checks that, as for any `Sendable` type.
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
    /// The type of the value that the callers get.
    associatedtype Value: Sendable

    /// Begins the work and returns soon. Called once: on the stack of the caller that led if a slot is free and no
    /// predecessor is still being stopped, otherwise in a task of that caller. So it runs with the task-local values of
    /// that caller, and so do the tasks that it makes.
    func begin(_ completion: Completion<Value>)

    /// Stops the work that `begin` began. Called at most once, after `begin` has returned, on the thread that cancelled.
    /// The work has ended by then: later calls of its completion are ignored. By default nothing is done.
    func stop()

    /// The fate of the work when its last caller leaves: `.cancel` unless the type says otherwise.
    var lastLeavePolicy: LastLeavePolicy { get }
}

extension Work {
    /// Does nothing.
    public func stop() {}
    /// `.cancel`: the work stops when its last caller leaves.
    public var lastLeavePolicy: LastLeavePolicy { .cancel }
}

/// The duty to end one piece of work. A closure, a task or an object may hold it, on any thread. If the last
/// reference goes without `finish`, the callers get `.abandoned`: they never wait for work that was forgotten.
///
/// (Work that stores its own completion forgets nothing: until the end, it and the completion keep each other.)
public final class Completion<Value: Sendable>: Sendable {
    /// The operation that ends with the work.
    @usableFromInline package let operation: CoalescibleOperation<Value>

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
/// It begins where its leader is: on the leader's stack, or in a task of the leader that waits for the slot. It never
/// begins on the stack of the caller that frees the slot, since the task-local values there are not the leader's.
public final class WorkOperation<W: Work>: CoalescibleOperation<W.Value>, @unchecked Sendable {
    /// Stops the work, until it has ended; `nil` if the work is a task, which is stopped itself.
    @usableFromInline let stop: Protected<(@Sendable () -> Void)?>
    /// Whether the work is a task.
    @usableFromInline let isTask: Bool
    @usableFromInline let start = Protected(LedStart.waiting(nil))

    /// For a manager, which calls `lead` next.
    @inlinable
    package init(_ policy: LastLeavePolicy, stop: (@Sendable () -> Void)?) {
        isTask = stop == nil
        self.stop = Protected(stop)
        super.init(lastLeavePolicy: policy)
    }

    public override func cancelWork() {
        if let stop = stop.withLock({ $0 }) { stop() } else { start.withLock { $0.task }?.cancel() }
    }

    /// Work that stores its completion, and the operation, would keep each other.
    override func forgetWork() { if !isTask { _ = stop.withLock { $0.take() } } }

    override func handOver() -> Bool {
        start.withLock { $0.grant() }?()
        return true
    }

    /// Begins the work here if it has its slot, otherwise in a task. Called once, by the caller that led, without a
    /// lock.
    /// - Parameters:
    ///   - entry: the result of `OperationGate.enrol`.
    ///   - execute: begins the work; instead of the method, which cannot be specialized for `W`.
    @inlinable
    package func lead<Doing: Sendable>(
        _ doing: Doing, from entry: OperationGate.Entry, at gate: OperationGate,
        _ execute: @escaping @Sendable (WorkOperation, Doing) -> Void
    ) {
        if entry == .running || isGranted(from: entry, at: gate) {
            begin(at: gate) { execute(self, doing) }
        } else {
            beginLater(at: gate) { execute(self, doing) }
        }
    }

    @usableFromInline
    func isGranted(from entry: OperationGate.Entry, at gate: OperationGate) -> Bool {
        gate.start(self, entry)
        return start.withLock { $0.isGranted }
    }

    @usableFromInline
    func begin(at gate: OperationGate, _ execute: () -> Void) {
        if begin(execute) { gate.releaseSlot(of: self) }
    }

    @usableFromInline
    func beginLater(at gate: OperationGate, _ execute: @escaping @Sendable () -> Void) {
        // An operation that ends before it has a slot must not leave its task waiting.
        whenEnded { [weak self] _ in _ = self?.handOver() }
        Task {
            await withCheckedContinuation { continuation in
                if start.withLock({ $0.wait { continuation.resume() } }) { continuation.resume() }
            }
            begin(at: gate, execute)
        }
    }

    /// Does `work` in a task of the leader. On this stack up to its first wait: to wake another thread costs more than
    /// most work.
    @inlinable
    package func run(_ work: @escaping @Sendable () async throws -> W.Value) {
        let task =
            if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
                Task.immediate { await self.perform(work) }
            } else {
                Task { await self.perform(work) }
            }
        // If the operation was cancelled meanwhile, `cancelWork` follows, and has no task to cancel.
        if hasEnded { task.cancel() } else { start.withLock { $0 = .begun(task) } }
    }

    /// Not a closure that both tasks in `run` share: Swift would wrap it twice.
    @inlinable
    func perform(_ work: @Sendable () async throws -> W.Value) async {
        do {
            finish(.success(try await work()))
        } catch {
            finish(.failure(error))
        }
    }
}

/// The type of work that an `async` closure is. It has no instances: the closure begins, and its task stops.
@usableFromInline
package enum TaskWork<Value: Sendable>: Work {
    /// Never called.
    @usableFromInline
    package func begin(_ completion: Completion<Value>) {}
}

/// Whether the work of a `WorkOperation` may begin. (For one that has its slot from the start, nobody asks.)
/// ```
/// waiting ─grant→ begun
/// ```
/// *waiting*: for the slot; so does the leader's task, if there is one. *begun*: the leader begins the work, here or in
/// that task.
@usableFromInline
enum LedStart: Sendable {
    // A closure that resumes the task: the compiler does not know the layout of a continuation, so an enum that holds
    // one is slow.
    case waiting((@Sendable () -> Void)?)
    case begun(Task<Void, Never>?)

    var task: Task<Void, Never>? { if case .begun(let task) = self { task } else { nil } }

    var isGranted: Bool { if case .begun = self { true } else { false } }

    /// - Returns: resumes the task that waits to begin the work.
    mutating func grant() -> (@Sendable () -> Void)? {
        guard case .waiting(let resume) = self else { return nil }
        self = .begun(nil)
        return resume
    }

    /// - Returns: whether the slot has come already.
    mutating func wait(_ resume: @escaping @Sendable () -> Void) -> Bool {
        guard case .waiting = self else { return true }
        self = .waiting(resume)
        return false
    }
}
