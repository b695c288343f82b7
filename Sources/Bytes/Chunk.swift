/// A block of memory of fixed capacity that never moves, shared by reference.
///
/// A chunk has one writer, which appends after the bytes that it has published and never changes published bytes.
/// Readers read only ranges that reached them through some synchronisation (a mutex, a mailbox, an acquiring load), so
/// a chunk needs no lock of its own. That is the invariant behind `@unchecked Sendable`.
public struct Chunk: @unchecked Sendable {
    @usableFromInline let memory: ManagedBuffer<Void, UInt8>
    @usableFromInline let size: UInt32

    /// The size in bytes, fixed at creation.
    @inlinable public var capacity: Int { Int(size) }

    /// - Parameter capacity: bytes, less than 4 GiB. The chunk does not account for them: its owner reserves them
    ///   (`MemoryBudget`).
    public init(capacity: Int) {
        size = UInt32(capacity)
        memory = ManagedBuffer<Void, UInt8>.create(minimumCapacity: capacity) { _ in }
    }

    /// The bytes `range`, which the caller knows to be written and published.
    @inlinable
    @_lifetime(borrow self)
    public func span(_ range: Range<Int>) -> Span<UInt8> {
        precondition(range.lowerBound >= 0 && range.upperBound <= capacity, "a range outside its chunk")
        // The memory lives as long as `memory`, which `self` keeps; it never moves.
        let start = unsafe memory.withUnsafeMutablePointerToElements { unsafe UnsafePointer($0) }
        let span = unsafe Span(_unsafeStart: start + range.lowerBound, count: range.count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// Copies `source` to `offset`. Only the chunk's one writer calls this, and only for an offset behind the published
    /// bytes.
    @inlinable
    public func write(_ source: Span<UInt8>, at offset: Int) {
        precondition(offset >= 0 && source.count <= capacity - offset, "a write outside its chunk")
        unsafe memory.withUnsafeMutablePointerToElements { target in
            unsafe source.withUnsafeBufferPointer { bytes in
                guard let from = bytes.baseAddress else { return }
                unsafe (target + offset).update(from: from, count: bytes.count)
            }
        }
    }

    /// Copies plain values to `offset`, which must be a multiple of their alignment; the chunk's start is always
    /// aligned for them. The rules of `write(_:at:)` apply.
    @inlinable
    public func write<Value: BitwiseCopyable>(values: Span<Value>, at offset: Int) {
        precondition(
            offset >= 0 && offset % MemoryLayout<Value>.alignment == 0
                && values.count * MemoryLayout<Value>.stride <= capacity - offset,
            "values outside their chunk")
        unsafe memory.withUnsafeMutablePointerToElements { target in
            unsafe values.withUnsafeBytes { bytes in
                guard let from = bytes.baseAddress else { return }
                unsafe UnsafeMutableRawPointer(target + offset).copyMemory(from: from, byteCount: bytes.count)
            }
        }
    }

    /// `count` values from `offset` on. The caller knows that values of this type were written there, and published.
    @inlinable @inline(__always)
    @_lifetime(borrow self)
    public func values<Value: BitwiseCopyable>(_ type: Value.Type, at offset: Int, count: Int) -> Span<Value> {
        precondition(
            offset >= 0 && offset % MemoryLayout<Value>.alignment == 0
                && count * MemoryLayout<Value>.stride <= capacity - offset,
            "values outside their chunk")
        // The memory is never bound to a type; it lives as long as `memory`, which `self` keeps, and never moves.
        let start = unsafe memory.withUnsafeMutablePointerToElements { unsafe UnsafeRawPointer($0 + offset) }
        let span = unsafe Span<Value>(_unsafeStart: start.assumingMemoryBound(to: Value.self), count: count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// Whether both are the same block of memory.
    @inlinable
    public func isSame(as other: Chunk) -> Bool { memory === other.memory }
}
