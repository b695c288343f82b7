public import Bytes

extension HeadBlock {
    /// The fields in `bytes`, which are complete lines as `StoredFields` writes them: `Name: value CRLF`, one after the
    /// other.
    ///
    /// Stored responses keep no list of their lines, to save memory. A plain hit needs no list; other uses build it
    /// with this initializer.
    public init(lines bytes: ByteSlice) {
        var builder = HeadBlockBuilder(capacity: bytes.count, lines: 12)
        builder.append(lines: bytes.span)
        self = builder.finish(keepsSlack: true)
    }
}
