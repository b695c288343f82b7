/// Carries something that belongs to a loop through `Sendable` closures, and lets only that loop touch it.
///
/// `@unchecked Sendable` holds because `value` is read on the loop's thread alone, which is checked, and is released
/// there: when the last reference goes elsewhere, the value is posted home first. Once the loop has ended nobody else
/// can be touching it, and it is released where it is.
public final class LoopBound<Value>: @unchecked Sendable {
    public let handle: LoopHandle
    private let box: Box

    /// On the loop's thread.
    public init(_ value: Value, on loop: EventLoop) {
        precondition(loop.handle.isCurrent, "something was bound to a loop from outside of it")
        box = Box(value)
        handle = loop.handle
    }

    /// On the loop's thread; anywhere else this is a bug, and stops the program.
    public var value: Value {
        precondition(handle.isCurrent, "something that belongs to a loop was touched outside of it")
        guard let value = box.value else { preconditionFailure("emptied only when nobody can ask any more") }
        return value
    }

    deinit {
        guard !handle.isCurrent else { return }
        handle.bringHome { [box] in box.value = nil }
    }

    /// Emptied on the loop, so that it does not matter which thread lets go of the box last.
    private final class Box: @unchecked Sendable {
        var value: Value?
        init(_ value: Value) { self.value = value }
    }
}
