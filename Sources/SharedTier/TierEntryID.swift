import Bytes

/// The ids of a stream's entries. They tell where content belongs, so that a reader sees each gap.
///
///     0-1            the head
///     <offset+1>-0   content, from this offset on
///     <greatest>     the end: the engine adds no entry after it
struct TierEntryID: Hashable {
    static let head: StaticString = "0-1"
    static let closing: StaticString = "18446744073709551615-18446744073709551615"

    let text: ByteSlice

    /// The id of content.
    init(at offset: Int) {
        let text = ByteBuffer(capacity: 24)
        text.append(decimal: offset + 1)
        text.append("-0")
        self.text = text.copied()
    }
}
