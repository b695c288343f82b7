public import Bytes

extension HeadBlock {
    /// The fields in `bytes`, which are complete lines as `StoredFields` writes them: `Name: value CRLF`, one after the other.
    ///
    /// What is stored by the hundred thousand keeps no list of its lines: those who need it, which a plain hit does not, find them anew.
    public init(lines bytes: ByteSlice) {
        var builder = HeadBlockBuilder(capacity: bytes.count, lines: 12)
        builder.append(lines: bytes.span)
        self = builder.finish(keepsSlack: true)
    }
}
