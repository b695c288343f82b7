/// Buffers lent to connections while they read, so that a waiting one holds none. One per loop.
public final class BufferStock {
    /// Without the run-time exclusivity check, which was most of the cost of lending: nothing here calls out while it
    /// changes.
    @exclusivity(unchecked) private var free: [ByteBuffer] = []
    private let bufferCapacity: Int
    private let most: Int

    /// - Parameters:
    ///   - bufferCapacity: bytes a lent buffer begins with.
    ///   - most: unused buffers kept; a burst's surplus is freed.
    public init(bufferCapacity: Int, most: Int) {
        self.bufferCapacity = bufferCapacity
        self.most = most
        unsafe free.reserveCapacity(most)
    }

    /// An empty buffer.
    public func lend() -> ByteBuffer { unsafe free.popLast() ?? ByteBuffer(capacity: bufferCapacity) }

    /// Takes a buffer back. One of another size is let go: it was for an exception, or grew for one.
    public func takeBack(_ buffer: ByteBuffer) {
        guard unsafe free.count < most, buffer.capacity == bufferCapacity else { return }
        buffer.removeAll()
        unsafe free.append(buffer)
    }
}
