/// A value that is changed in place by one caller at a time, which a flag makes sure of.
///
/// The language's own check enters each access into a list and takes it out again, a hundred instructions; moving a
/// large value out of its object and back, so that nothing needs watching, costs more still. Not `Sendable`: it lives
/// on one loop.
@safe public final class Exclusive<Value: ~Copyable> {
    // Exempt from the run-time check, in the place of which `isInUse` stands. Only `use` touches them.
    @exclusivity(unchecked) @usableFromInline var value: Value
    @exclusivity(unchecked) @usableFromInline var isInUse = false

    /// Holds `value` from now on.
    @inlinable
    public init(_ value: consuming Value) { unsafe self.value = value }

    /// Lends the value to `body`, which must not come here again.
    @inlinable @inline(__always)
    public func use<Result: ~Copyable, E: Error>(_ body: (inout Value) throws(E) -> Result) throws(E) -> Result {
        precondition(unsafe !isInUse, "used while it is in use")
        unsafe isInUse = true
        defer { unsafe isInUse = false }
        return try unsafe body(&value)
    }
}
