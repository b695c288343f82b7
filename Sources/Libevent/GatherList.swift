public import Bytes
import Glibc

/// The pieces of one gathering write. A list is filled, written and emptied again and again without allocating, so one
/// a loop is enough. It keeps what the pieces point into alive until emptied.
@safe public final class GatherList {
    /// How many pieces fit in. The kernel would take 1024; more than this rarely fit into a socket's buffer.
    public static let capacity = 64

    /// The first place is left free for a piece that is only borrowed for one call.
    private let vectors: UnsafeMutablePointer<iovec>
    // Without checks of exclusive access at run time, a dozen for each write: what they would find cannot be, since
    // nothing here calls out while it changes the list.
    /// `vectors[i + 1]` points into `pieces[i]`, whose chunk never moves.
    @exclusivity(unchecked) private var pieces: [ByteSlice] = []
    @exclusivity(unchecked) private var bytes = 0
    /// Where slices are gathered before it is known how much of them is offered.
    @exclusivity(unchecked) @usableFromInline var slices: [ByteSlice] = []

    /// Bytes of all pieces.
    public var byteCount: Int { unsafe bytes }

    /// An empty list with room for `capacity` pieces.
    public init() {
        unsafe vectors = .allocate(capacity: Self.capacity + 1)
        unsafe pieces.reserveCapacity(Self.capacity)
    }

    deinit { unsafe vectors.deallocate() }

    /// Pieces.
    public var count: Int { unsafe pieces.count }
    public var isEmpty: Bool { unsafe pieces.isEmpty }
    public var isFull: Bool { unsafe pieces.count == Self.capacity }

    /// Adds a piece; the list must not be full. An empty piece is left out.
    public func append(_ piece: ByteSlice) {
        precondition(!isFull, "a piece too many")
        guard !piece.isEmpty else { return }
        unsafe pieces.append(piece)
        unsafe self.bytes += piece.count
        unsafe piece.span.withUnsafeBytes { bytes in
            // Outlives the closure: the chunk's memory does not move, and `pieces` keeps the chunk.
            unsafe vectors[pieces.count] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        }
    }

    /// Lets go of the pieces; the memory for the next ones stays.
    public func removeAll() {
        guard unsafe !pieces.isEmpty else { return }
        unsafe pieces.removeAll(keepingCapacity: true)
        unsafe bytes = 0
    }

    /// Lends `body` an empty array with room: a place for slices before it is known how much of them goes into the
    /// list.
    @inlinable
    public func withSlices<Result>(_ body: (inout [ByteSlice]) -> Result) -> Result {
        var lent: [ByteSlice] = []
        unsafe swap(&lent, &slices)
        let result = body(&lent)
        lent.removeAll(keepingCapacity: true)
        unsafe swap(&lent, &slices)
        return result
    }

    /// Adds a copy of the pieces to `buffer`.
    public func copy(to buffer: ByteBuffer) {
        for piece in unsafe pieces { buffer.append(piece) }
    }

    /// All pieces after `head`, for one call of `body`.
    func withVectors<Result>(
        after head: UnsafeRawBufferPointer, _ body: (UnsafeMutablePointer<iovec>, Int) -> Result
    ) -> Result {
        guard head.count > 0 else { return unsafe body(vectors + 1, pieces.count) }
        unsafe vectors[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: head.baseAddress), iov_len: head.count)
        return unsafe body(vectors, pieces.count + 1)
    }
}
