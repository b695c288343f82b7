/// A `CoalescibleOperation` of any value: the class itself or a subclass, nothing else.
///
/// Only for constraints. If `enqueue` named the class instead, Swift would take an operation made by a closure of
/// several statements for one of class `CoalescibleOperation`, and not of its own subclass.
public protocol SharedOperation<Value>: AnyOperation {
    /// The type of the value that the waiters get.
    associatedtype Value: Sendable

    /// This operation, as the class it inherits from.
    var shared: CoalescibleOperation<Value> { get }
}

extension CoalescibleOperation: SharedOperation {
    /// This operation.
    @inlinable
    public final var shared: CoalescibleOperation<Value> { self }
}
