/// Carries a value that belongs to a loop through `Sendable` closures. Only that loop can read the value.
///
/// `@unchecked Sendable` holds because `value` is read on the loop's thread only, which is checked, and is released
/// there: if another thread drops the last reference, the value is first posted to its loop. Once the loop has ended,
/// no other code can be touching the value, and it is released on the present thread.
public struct LoopBound<Value>: @unchecked Sendable {
    @usableFromInline let home: LoopHome

    /// On the loop's thread.
    @inlinable
    public init(_ value: Value, on loop: EventLoop) where Value: AnyObject {
        home = LoopHome(value, isBoxed: false, handle: loop.handle)
    }

    /// On the loop's thread. A value that is not an object is put into a box.
    @inlinable
    @_disfavoredOverload
    public init(_ value: Value, on loop: EventLoop) {
        home = LoopHome(LoopBox(value), isBoxed: true, handle: loop.handle)
    }

    /// The handle of the value's loop. Any thread.
    @inlinable public var handle: LoopHandle { home.handle }

    /// On the loop's thread; a read on any other thread is a bug, and stops the program.
    @inlinable
    public var value: Value {
        let object = home.object
        // The casts are right: `init` put an object of this type in.
        if home.isBoxed { return unsafe unsafeDowncast(object, to: LoopBox<Value>.self).value }
        return unsafe unsafeBitCast(object, to: Value.self)
    }
}

/// The part of a `LoopBound` that its copies share. It does not know `Value`, so that making and dropping one needs no
/// type metadata.
@usableFromInline
final class LoopHome: @unchecked Sendable {
    @usableFromInline let handle: LoopHandle
    @usableFromInline let isBoxed: Bool
    private var content: AnyObject?

    @usableFromInline
    init(_ content: AnyObject, isBoxed: Bool, handle: LoopHandle) {
        precondition(handle.isCurrent, "something was bound to a loop from outside of it")
        self.content = content
        self.isBoxed = isBoxed
        self.handle = handle
    }

    @usableFromInline
    var object: AnyObject {
        precondition(handle.isCurrent, "something that belongs to a loop was touched outside of it")
        guard let content else { preconditionFailure("emptied only when nobody can ask any more") }
        return content
    }

    deinit {
        guard !handle.isCurrent else { return }
        // Moved, not copied: this thread must not keep a reference that could be the last one.
        let parcel = LoopParcel(content.take())
        handle.bringHome { parcel.content = nil }
    }
}

/// An object on its way to its loop. The loop empties the parcel, so it does not matter which thread drops the parcel
/// last.
final class LoopParcel: @unchecked Sendable {
    var content: AnyObject?
    init(_ content: consuming AnyObject?) { self.content = content }
}

/// An object that holds a value.
@usableFromInline
final class LoopBox<Value> {
    @usableFromInline let value: Value

    @inlinable
    init(_ value: Value) { self.value = value }
}

/// `LoopBound` for one owner: an object that other threads see holds a value that belongs to a loop, without a shared
/// object in between.
///
/// `@unchecked Sendable` for the same reasons: `value` is read on the loop's thread only, which is checked, and is
/// released there. `object` is a reference that `init` retained and only `deinit` releases, so it is valid in between.
@safe public struct LoopOwned<Value: AnyObject>: ~Copyable, @unchecked Sendable {
    /// The handle of the value's loop. Any thread.
    public let handle: LoopHandle
    @usableFromInline let object: Unmanaged<Value>

    /// On the loop's thread.
    @inlinable
    public init(_ value: consuming Value, on loop: borrowing EventLoop) {
        handle = loop.handle
        precondition(handle.isCurrent, "something was bound to a loop from outside of it")
        unsafe object = Unmanaged.passRetained(value)
    }

    /// On the loop's thread; a read on any other thread is a bug, and stops the program.
    @inlinable
    public var value: Value {
        precondition(handle.isCurrent, "something that belongs to a loop was touched outside of it")
        return unsafe object.takeUnretainedValue()
    }

    /// Lends the value to `body` without retaining it: `self`, which is borrowed meanwhile, keeps it alive.
    @inlinable
    public borrowing func use<Result>(_ body: (Value) -> Result) -> Result {
        precondition(handle.isCurrent, "something that belongs to a loop was touched outside of it")
        return unsafe object._withUnsafeGuaranteedRef { body($0) }
    }

    deinit {
        if handle.isCurrent {
            unsafe object.release()
        } else {
            let parcel = unsafe LoopParcel(object.takeRetainedValue())
            handle.bringHome { parcel.content = nil }
        }
    }
}
