import Bytes

/// Builds a `HeadBlock` whose bytes are complete field lines, `Name: value CRLF`, one behind the other.
struct HeadBlockBuilder {
    private let buffer: ByteBuffer
    private var lines: [FieldLine] = []
    private var present: FieldSet = []

    /// - Parameters:
    ///   - capacity: bytes that will do.
    ///   - lines: how many will do.
    init(capacity: Int, lines count: Int = 0) {
        buffer = ByteBuffer(capacity: capacity)
        lines.reserveCapacity(count)
    }

    /// The line of `fields` at `index`, name and value as they stand.
    mutating func append(_ fields: FieldView, _ index: Int) {
        append(fields.name(at: index), fields.lines[index].field) { buffer in buffer.append(fields.value(at: index)) }
    }

    mutating func appendDate(_ seconds: Int64) {
        let name = Array("Date".utf8)
        append(name.span, .date) { HTTPDate.append(seconds, to: $0) }
    }

    private mutating func append(_ name: Span<UInt8>, _ field: KnownField, value: (ByteBuffer) -> Void) {
        let start = buffer.count
        buffer.append(name)
        let nameEnd = buffer.count
        buffer.append(": ")
        let valueStart = buffer.count
        value(buffer)
        lines.append(FieldLine(name: ByteRange(start..<nameEnd), value: ByteRange(valueStart..<buffer.count), field: field))
        present.insert(field)
        buffer.append("\r\n")
    }

    func finish() -> HeadBlock { HeadBlock(bytes: buffer.copied(), lines: lines, present: present) }
}
