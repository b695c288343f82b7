public import Bytes
import CLibevent
import Glibc

/// The pieces of one gathering write. A list is filled, written and emptied again and again without allocating, so one
/// list per loop is enough. The list keeps the memory of its pieces alive until emptied.
///
/// Bodies are sent from memory, with `sendmsg`. `sendfile` from a memory file, `MSG_ZEROCOPY` and `vmsplice` avoid a
/// copy, but were measured to cost more than the copy.
@safe public final class GatherList {
    /// The number of pieces that fit. The kernel would take 1024, but more than 64 rarely fit into a socket's buffer.
    public static let capacity = 64

    /// The first place stays free for a piece that is borrowed for one call only.
    private let vectors: UnsafeMutablePointer<iovec>
    // No checks of exclusive access at run time, which would be a dozen for each write. No overlapping access can
    // occur, since the list calls no other code while it changes.
    /// `vectors[i + 1]` points into `pieces[i]`, whose chunk never moves.
    @exclusivity(unchecked) private var pieces: [ByteSlice] = []
    @exclusivity(unchecked) private var bytes = 0
    /// Memory lent by `withSlices`.
    @exclusivity(unchecked) @usableFromInline var slices: [ByteSlice] = []

    /// The number of bytes in all pieces.
    public var byteCount: Int { unsafe bytes }

    /// An empty list with room for `capacity` pieces.
    public init() {
        unsafe vectors = .allocate(capacity: Self.capacity + 1)
        unsafe pieces.reserveCapacity(Self.capacity)
    }

    deinit { unsafe vectors.deallocate() }

    /// The number of pieces.
    public var count: Int { unsafe pieces.count }
    public var isEmpty: Bool { unsafe pieces.isEmpty }
    public var isFull: Bool { unsafe pieces.count == Self.capacity }

    /// Adds a piece; the list must not be full. An empty piece is ignored.
    public func append(_ piece: ByteSlice) {
        precondition(!isFull, "a piece too many")
        guard !piece.isEmpty else { return }
        unsafe pieces.append(piece)
        unsafe self.bytes += piece.count
        unsafe piece.span.withUnsafeBytes { bytes in
            // The pointer outlives the closure: the chunk's memory does not move, and `pieces` keeps the chunk alive.
            unsafe vectors[pieces.count] = iovec(
                iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
        }
    }

    /// Releases the pieces but keeps the list's memory for the next ones.
    public func removeAll() {
        guard unsafe !pieces.isEmpty else { return }
        unsafe pieces.removeAll(keepingCapacity: true)
        unsafe bytes = 0
    }

    /// Lends `body` an empty array with reserved memory. `body` gathers slices in it before it is known how many of
    /// them go into the list.
    @inlinable
    public func withSlices<Result>(_ body: (inout [ByteSlice]) -> Result) -> Result {
        var lent: [ByteSlice] = []
        unsafe swap(&lent, &slices)
        let result = body(&lent)
        lent.removeAll(keepingCapacity: true)
        unsafe swap(&lent, &slices)
        return result
    }

    /// Calls `body` with each piece.
    public func forEach(_ body: (ByteSlice) -> Void) { for piece in unsafe pieces { body(piece) } }

    /// Adds a copy of the pieces to `buffer`.
    public func copy(to buffer: ByteBuffer) {
        for piece in unsafe pieces { buffer.append(piece) }
    }

    /// Calls `body` with `head` and all pieces. The vectors are valid only during the call.
    func withVectors<Result>(
        after head: UnsafeRawBufferPointer, _ body: (UnsafeMutablePointer<iovec>, Int) -> Result
    ) -> Result {
        guard head.count > 0 else { return unsafe body(vectors + 1, pieces.count) }
        unsafe vectors[0] = iovec(iov_base: UnsafeMutableRawPointer(mutating: head.baseAddress), iov_len: head.count)
        return unsafe body(vectors, pieces.count + 1)
    }
}
