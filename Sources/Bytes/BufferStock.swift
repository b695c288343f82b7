/// Buffers lent to connections while they read, so that a waiting connection holds none. Each loop has one stock.
public final class BufferStock {
    /// Exempt from the run-time exclusivity check, which was most of the cost of lending: no method calls out while it
    /// changes the list.
    @exclusivity(unchecked) private var free: [ByteBuffer] = []
    private let bufferCapacity: Int
    private let most: Int

    /// - Parameters:
    ///   - bufferCapacity: the capacity, in bytes, with which a lent buffer begins.
    ///   - most: how many unused buffers are kept; the surplus of a burst is freed.
    public init(bufferCapacity: Int, most: Int) {
        self.bufferCapacity = bufferCapacity
        self.most = most
        unsafe free.reserveCapacity(most)
    }

    /// An empty buffer.
    public func lend() -> ByteBuffer { unsafe free.popLast() ?? ByteBuffer(capacity: bufferCapacity) }

    /// Takes a buffer back. A buffer of another capacity is freed: it was made for an exception, or grew for one.
    public func takeBack(_ buffer: ByteBuffer) {
        guard unsafe free.count < most, buffer.capacity == bufferCapacity else { return }
        buffer.removeAll()
        unsafe free.append(buffer)
    }
}
