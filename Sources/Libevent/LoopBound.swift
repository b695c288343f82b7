/// Carries something that belongs to a loop through `Sendable` closures, and lets only that loop touch it.
///
/// `@unchecked Sendable` holds because `value` is read on the loop's thread alone, which is checked, and is released
/// there: if the last reference goes elsewhere, the value is posted to its loop first. Once the loop has ended, nothing
/// else can be touching it, and it is released where it is.
public struct LoopBound<Value>: @unchecked Sendable {
    @usableFromInline let home: LoopHome

    /// On the loop's thread.
    @inlinable
    public init(_ value: Value, on loop: EventLoop) where Value: AnyObject {
        home = LoopHome(value, isBoxed: false, handle: loop.handle)
    }

    /// On the loop's thread. A value that is not an object gets a box.
    @inlinable
    @_disfavoredOverload
    public init(_ value: Value, on loop: EventLoop) {
        home = LoopHome(LoopBox(value), isBoxed: true, handle: loop.handle)
    }

    /// The handle of the loop that the value lives on. Any thread.
    @inlinable public var handle: LoopHandle { home.handle }

    /// On the loop's thread; anywhere else this is a bug, and stops the program.
    @inlinable
    public var value: Value {
        let object = home.object
        // What `init` put in.
        if home.isBoxed { return unsafe unsafeDowncast(object, to: LoopBox<Value>.self).value }
        return unsafe unsafeBitCast(object, to: Value.self)
    }
}

/// What a `LoopBound` shares with its copies. Knows no `Value`, so that making and dropping one costs no metadata.
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
        // Moved, not copied: no reference may be left here that could be the last one.
        let parcel = LoopParcel(content.take())
        handle.bringHome { parcel.content = nil }
    }
}

/// Something on its way to its loop. Emptied there, so that it does not matter which thread drops it last.
final class LoopParcel: @unchecked Sendable {
    var content: AnyObject?
    init(_ content: consuming AnyObject?) { self.content = content }
}

/// Makes an object of a value.
@usableFromInline
final class LoopBox<Value> {
    @usableFromInline let value: Value

    @inlinable
    init(_ value: Value) { self.value = value }
}

/// `LoopBound` for one owner: something that belongs to a loop, held by an object that other threads see, without an
/// object in between.
///
/// `@unchecked Sendable` for the same reasons: `value` is read on the loop's thread alone, which is checked, and is
/// released there. `object` is a reference that `init` took and only `deinit` gives up, so it is valid in between.
@safe public struct LoopOwned<Value: AnyObject>: ~Copyable, @unchecked Sendable {
    /// The handle of the loop that the value lives on. Any thread.
    public let handle: LoopHandle
    @usableFromInline let object: Unmanaged<Value>

    /// On the loop's thread.
    @inlinable
    public init(_ value: consuming Value, on loop: borrowing EventLoop) {
        handle = loop.handle
        precondition(handle.isCurrent, "something was bound to a loop from outside of it")
        unsafe object = Unmanaged.passRetained(value)
    }

    /// On the loop's thread; anywhere else this is a bug, and stops the program.
    @inlinable
    public var value: Value {
        precondition(handle.isCurrent, "something that belongs to a loop was touched outside of it")
        return unsafe object.takeUnretainedValue()
    }

    /// Lends the value, which is not retained: `self`, which is borrowed meanwhile, keeps it.
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
