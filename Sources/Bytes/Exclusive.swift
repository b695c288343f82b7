/// A value that one caller at a time changes in place; a flag enforces this.
///
/// Swift's own check enters each access into a list and removes it again, a hundred instructions. Moving a large value
/// out of its object and back, which needs no check, costs still more. Not `Sendable`: the value lives on one loop.
@safe public final class Exclusive<Value: ~Copyable> {
    // Exempt from the run-time check, which `isInUse` replaces. Only `use` touches them.
    @exclusivity(unchecked) @usableFromInline var value: Value
    @exclusivity(unchecked) @usableFromInline var isInUse = false

    /// Holds `value` from now on.
    @inlinable
    public init(_ value: consuming Value) { unsafe self.value = value }

    /// Lends the value to `body`, which must not call `use` again.
    @inlinable @inline(__always)
    public func use<Result: ~Copyable, E: Error>(_ body: (inout Value) throws(E) -> Result) throws(E) -> Result {
        precondition(unsafe !isInUse, "used while it is in use")
        unsafe isInUse = true
        defer { unsafe isInUse = false }
        return try unsafe body(&value)
    }
}
