import Bytes

/// Builds a `HeadBlock` whose bytes are complete field lines, `Name: value CRLF`, one after the other.
struct HeadBlockBuilder {
    /// Bytes that may stay unused at the end: they cost less than a copy.
    private static let slack = 64

    private var block: Chunk
    /// Offset of the first byte; the memory before it is for lines.
    private var start: Int
    /// Number of bytes written.
    private var count = 0
    private var lineCount = 0
    private var present: FieldSet = []

    /// - Parameters:
    ///   - capacity: expected number of bytes. More bytes fit, at the price of a copy.
    ///   - lines: expected number of lines, likewise.
    init(capacity: Int, lines: Int) {
        start = HeadBlock.room(forLines: lines)
        block = Chunk(capacity: start + capacity)
    }

    /// The size in bytes of the line of `fields` at `index`.
    static func size(_ fields: FieldView, _ index: Int) -> Int {
        fields.lines[index].name.range.count + fields.lines[index].value.range.count + 4
    }

    static let dateLineSize = "Date: ".utf8.count + HTTPDate.length + 2

    /// Appends the line of `fields` at `index`, with its name and value unchanged.
    mutating func append(_ fields: FieldView, _ index: Int) {
        let line = fields.lines[index]
        guard let whole = fields.completeLine(at: index) else {
            return append(fields.name(at: index), fields.value(at: index), line.field)
        }
        makeRoom(for: whole.count)
        block.write(fields.bytes.extracting(whole), at: start + count)
        let valueStart = count + Int(line.value.lower) - whole.lowerBound
        keep(count..<count + line.name.range.count, valueStart..<valueStart + line.value.range.count, line.field)
    }

    private mutating func keep(_ name: Range<Int>, _ value: Range<Int>, _ field: KnownField) {
        let line: InlineArray<1, FieldLine> = [FieldLine(name: ByteRange(name), value: ByteRange(value), field: field)]
        block.write(values: line.span, at: HeadBlock.room(forLines: lineCount))
        lineCount += 1
        present.insert(field)
        count = value.upperBound + 2
    }

    /// Appends complete lines, unchanged.
    mutating func append(lines text: Span<UInt8>) {
        var lower = 0
        while let nameEnd = text.firstIndex(of: UInt8(ascii: ":"), from: lower),
            let valueEnd = text.firstIndex(of: UInt8(ascii: "\r"), from: nameEnd)
        {
            let line = text.extracting(lower..<valueEnd + 2)
            makeRoom(for: line.count)
            block.write(line, at: start + count)
            let (name, value) = (nameEnd - lower, min(nameEnd + 2, valueEnd) - lower)
            keep(
                count..<count + name, count + value..<count + valueEnd - lower,
                KnownField.recognise(text.extracting(lower..<nameEnd)))
            lower = valueEnd + 2
        }
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
        block.write(name, at: start + count)
        block.write(Self.colon.span, at: start + nameEnd)
        block.write(value, at: start + valueStart)
        block.write(Self.lineEnd.span, at: start + valueEnd)
        keep(count..<nameEnd, valueStart..<valueEnd, field)
    }

    private static let colon: InlineArray<2, UInt8> = [0x3a, 0x20]
    private static let lineEnd: InlineArray<2, UInt8> = [0x0d, 0x0a]

    /// Makes room for one more line, of `size` bytes.
    private mutating func makeRoom(for size: Int) {
        let lines = HeadBlock.room(forLines: lineCount + 1)
        guard lines > start || size > block.capacity - start - count else { return }
        move(roomForLines: max(start, 2 * lines), capacity: max(block.capacity - start, 2 * (count + size)))
    }

    private mutating func move(roomForLines: Int, capacity: Int) {
        let other = Chunk(capacity: roomForLines + capacity)
        other.write(values: block.values(FieldLine.self, at: 0, count: lineCount), at: 0)
        other.write(block.span(start..<start + count), at: roomForLines)
        block = other
        start = roomForLines
    }

    /// - Parameter keepsSlack: true saves a copy, for a block that is not kept long.
    consuming func finish(keepsSlack: Bool = false) -> HeadBlock {
        let lines = HeadBlock.room(forLines: lineCount)
        if !keepsSlack, block.capacity - lines - count > Self.slack { move(roomForLines: lines, capacity: count) }
        return HeadBlock(block, lineCount: lineCount, bytes: start..<start + count, present: present)
    }
}

extension FieldView {
    /// The range of the line at `index` if it has the form of a stored line, `Name: value CRLF`, and so can be copied
    /// in one piece; otherwise `nil`.
    @inline(__always)
    func completeLine(at index: Int) -> Range<Int>? {
        let line = lines[index]
        let end = Int(line.value.upper)
        guard line.value.lower == line.name.upper + 2, end + 2 <= bytes.count, bytes[Int(line.value.lower) - 1] == 0x20,
            bytes[end] == 0x0d, bytes[end + 1] == 0x0a
        else { return nil }
        return Int(line.name.lower)..<end + 2
    }
}
