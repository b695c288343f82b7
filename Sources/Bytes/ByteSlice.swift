/// Immutable bytes: a range of a chunk, kept alive by reference. Copying a slice copies no bytes.
public struct ByteSlice: Sendable {
    /// The memory that holds the bytes; the slice keeps it alive.
    public let chunk: Chunk
    @usableFromInline let offset: UInt32
    @usableFromInline let length: UInt32

    /// The range must be written and published (see `Chunk`).
    @inlinable
    public init(_ chunk: Chunk, _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= chunk.capacity, "a slice outside its chunk")
        self.chunk = chunk
        offset = UInt32(range.lowerBound)
        length = UInt32(range.count)
    }

    /// A copy of `source` in a chunk of its own.
    @inlinable
    public init(copying source: Span<UInt8>) {
        let chunk = Chunk(capacity: source.count)
        chunk.write(source, at: 0)
        self.init(chunk, 0..<source.count)
    }

    /// The UTF-8 bytes of `text` in a chunk of their own.
    public init(_ text: StaticString) {
        let pointer = unsafe UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        let span = unsafe Span(_unsafeElements: pointer)
        self.init(copying: span)
    }

    /// The UTF-8 bytes of `text` in a chunk of their own. Not for the hot path.
    public init(_ text: String) {
        self.init(copying: Array(text.utf8).span)
    }

    /// No bytes, in a chunk that all empty slices share.
    public static let empty = ByteSlice(Chunk(capacity: 0), 0..<0)

    /// The number of bytes.
    @inlinable public var count: Int { Int(length) }
    @inlinable public var isEmpty: Bool { length == 0 }
    /// The offset of the first byte in the chunk.
    @inlinable public var start: Int { Int(offset) }
    @inlinable public var end: Int { Int(offset) + Int(length) }

    /// The bytes; valid as long as the slice is.
    @inlinable
    public var span: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            chunk.span(start..<end)
        }
    }

    /// The part `range` of this slice, counted from its own start.
    @inlinable
    public subscript(range: Range<Int>) -> ByteSlice {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "a part outside its slice")
        return ByteSlice(chunk, start + range.lowerBound..<start + range.upperBound)
    }
}

extension ByteSlice: Hashable {
    public static func == (left: ByteSlice, right: ByteSlice) -> Bool {
        left.offset == right.offset && left.length == right.length && left.chunk.isSame(as: right.chunk)
            || left.span.isEqual(to: right.span)
    }

    public func hash(into hasher: inout Hasher) {
        // The closure only reads the bytes, while they are lent.
        unsafe span.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
}

extension String {
    /// The bytes read as UTF-8, with replacement characters for invalid sequences. For logs and tests.
    public init(_ slice: ByteSlice) {
        self.init(slice.span)
    }

    /// The bytes read as UTF-8, with replacement characters for invalid sequences. For logs and tests.
    public init(_ span: Span<UInt8>) {
        self = unsafe span.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
