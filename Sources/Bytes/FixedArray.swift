/// A fixed number of values that never move, each in cache lines of its own: for shards, whose locks should not slow
/// each other down.
///
/// The values are borrowed, never copied out. An array of objects would retain an object with each use: two atomic
/// instructions.
///
/// `init` allocates the memory and initialises every value in it, and only `deinit` frees it. In between, only the
/// values themselves, which are `Sendable`, write to it. That is the invariant behind `@unchecked Sendable`.
@safe public struct FixedArray<Element: ~Copyable & Sendable>: ~Copyable, @unchecked Sendable {
    private static var line: Int { 64 }
    /// Bytes from one value to the next.
    private static var stride: Int { (max(1, MemoryLayout<Element>.size) + line - 1) / line * line }

    @usableFromInline let memory: UnsafeMutableRawPointer
    @usableFromInline let stride: Int
    /// The number of values, fixed at creation.
    public let count: Int

    /// Makes `count` values.
    /// - Parameter make: returns the value for an index.
    public init(count: Int, _ make: (Int) -> Element) {
        precondition(count >= 0, "a negative number of values")
        self.count = count
        stride = Self.stride
        unsafe memory = .allocate(
            byteCount: max(1, count) * stride, alignment: max(Self.line, MemoryLayout<Element>.alignment))
        for index in 0..<count { unsafe (memory + index * stride).initializeMemory(as: Element.self, to: make(index)) }
    }

    deinit {
        for index in 0..<count {
            unsafe (memory + index * stride).assumingMemoryBound(to: Element.self).deinitialize(count: 1)
        }
        unsafe memory.deallocate()
    }

    /// Lends the value at `index`, which must be less than `count`.
    @inlinable
    public subscript(index: Int) -> Element {
        @inline(__always)
        _read {
            precondition(index >= 0 && index < count, "an index outside its array")
            yield unsafe (memory + index &* stride).assumingMemoryBound(to: Element.self).pointee
        }
    }
}
