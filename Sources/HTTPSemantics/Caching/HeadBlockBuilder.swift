import Bytes

/// Builds a `HeadBlock` whose bytes are complete field lines, `Name: value CRLF`, one behind the other.
struct HeadBlockBuilder {
    /// What may stay unused at the end: less than a copy costs.
    private static let slack = 64

    private var chunk: Chunk
    private var count = 0
    private var lines: [FieldLine] = []
    private var present: FieldSet = []

    /// - Parameters:
    ///   - capacity: bytes that will do. What needs more gets it, at the price of a copy.
    ///   - lines: how many will do.
    init(capacity: Int, lines count: Int = 0) {
        chunk = Chunk(capacity: capacity)
        lines.reserveCapacity(count)
    }

    /// Bytes that the line of `fields` at `index` takes.
    static func size(_ fields: FieldView, _ index: Int) -> Int {
        fields.lines[index].name.range.count + fields.lines[index].value.range.count + 4
    }

    static let dateLineSize = "Date: ".utf8.count + HTTPDate.length + 2

    /// The line of `fields` at `index`, name and value as they stand.
    mutating func append(_ fields: FieldView, _ index: Int) {
        let line = fields.lines[index]
        let (start, end) = (Int(line.name.lower), Int(line.value.upper))
        // Most lines stand there as they are to stand here, and are copied in one go.
        guard line.value.lower == line.name.upper + 2, end + 2 <= fields.bytes.count, fields.bytes[end - line.value.range.count - 1] == 0x20,
              fields.bytes[end] == 0x0d, fields.bytes[end + 1] == 0x0a else {
            return append(fields.name(at: index), fields.value(at: index), line.field)
        }
        makeRoom(for: end + 2 - start)
        chunk.write(fields.bytes.extracting(start..<end + 2), at: count)
        let valueStart = count + Int(line.value.lower) - start
        keep(count..<count + line.name.range.count, valueStart..<valueStart + line.value.range.count, line.field)
    }

    private mutating func keep(_ name: Range<Int>, _ value: Range<Int>, _ field: KnownField) {
        lines.append(FieldLine(name: ByteRange(name), value: ByteRange(value), field: field))
        present.insert(field)
        count = value.upperBound + 2
    }

    mutating func appendDate(_ seconds: Int64) {
        let name = Array("Date".utf8)
        let text = ByteBuffer(capacity: HTTPDate.length)
        HTTPDate.append(seconds, to: text)
        append(name.span, text.span, .date)
    }

    private mutating func append(_ name: Span<UInt8>, _ value: Span<UInt8>, _ field: KnownField) {
        makeRoom(for: name.count + value.count + 4)
        let (nameEnd, valueStart) = (count + name.count, count + name.count + 2)
        let valueEnd = valueStart + value.count
        chunk.write(name, at: count)
        chunk.write(Self.colon.span, at: nameEnd)
        chunk.write(value, at: valueStart)
        chunk.write(Self.lineEnd.span, at: valueEnd)
        keep(count..<nameEnd, valueStart..<valueEnd, field)
    }

    private static let colon: InlineArray<2, UInt8> = [0x3a, 0x20]
    private static let lineEnd: InlineArray<2, UInt8> = [0x0d, 0x0a]

    private mutating func makeRoom(for more: Int) {
        if more > chunk.capacity - count { move(to: Chunk(capacity: 2 * (count + more))) }
    }

    private mutating func move(to other: Chunk) {
        other.write(chunk.span(0..<count), at: 0)
        chunk = other
    }

    consuming func finish() -> HeadBlock {
        if chunk.capacity - count > Self.slack { move(to: Chunk(capacity: count)) }
        return HeadBlock(bytes: ByteSlice(chunk, 0..<count), lines: lines, present: present)
    }
}
