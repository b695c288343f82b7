/// One piece of a body that is still arriving.
struct BodyPiece: Sendable {
    let chunk: Chunk
    /// Offset of the piece's first byte in the body.
    let start: Int
    var filled = 0
    /// Attached readers whose next byte is in this piece.
    var readers = 0

    var isFull: Bool { filled == chunk.capacity }
    var bytes: ByteSlice { ByteSlice(chunk, 0..<filled) }
}
