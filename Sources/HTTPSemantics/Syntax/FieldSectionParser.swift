import Bytes

/// Reads lines that end in CR LF, and field lines among them (RFC 9112 §5): the shared part of request heads, response
/// heads and trailer sections.
///
/// The parser keeps its position, so that no byte is searched twice, and checks a line as soon as the line is complete.
/// The reason for refusing a line does not depend on how the bytes were split into reads.
struct FieldSectionParser {
    /// The first `count` lines belong to the head being read; the others are left over from earlier heads, and their
    /// memory is reused.
    private var memory: [FieldLine] = []
    private var count = 0
    private(set) var present: FieldSet = []
    /// Where the line being read starts.
    private(set) var lineStart = 0
    /// No line feed of the line being read stands before this offset.
    private var searched = 0
    private let maxLines: Int

    init(maxLines: Int, reserving capacity: Int = 0) {
        self.maxLines = maxLines
        memory.reserveCapacity(capacity)
    }

    /// The lines read so far.
    var lines: Span<FieldLine> {
        @_lifetime(borrow self)
        get { memory.span.extracting(first: count) }
    }

    /// Prepares for the next head; the memory of `lines` is kept.
    mutating func reset() {
        count = 0
        present = []
        lineStart = 0
        searched = 0
    }

    /// The next finished line without its CR LF, or `nil`. A line that ends beyond `limit` is refused with `excess`,
    /// whether or not its end has arrived.
    @inline(__always)
    mutating func nextLine(
        in bytes: Span<UInt8>, limit: Int, excess: MessageSyntaxError.Reason
    ) throws(MessageSyntaxError) -> Range<Int>? {
        guard let lineFeed = bytes.firstIndex(of: 0x0a, from: searched) else {
            if bytes.count >= limit { throw MessageSyntaxError(excess, at: limit) }
            searched = bytes.count
            return nil
        }
        if lineFeed >= limit { throw MessageSyntaxError(excess, at: limit) }
        // RFC 9112 §2.2 permits accepting a bare LF; beside a recipient that does not accept it, that permits request
        // smuggling.
        guard lineFeed > lineStart, bytes[lineFeed &- 1] == 0x0d else {
            throw MessageSyntaxError(.bareLineFeed, at: lineFeed)
        }
        let line = lineStart..<(lineFeed &- 1)
        lineStart = lineFeed &+ 1
        searched = lineStart
        return line
    }

    /// Whether no byte of the line being read has been searched. A head may arrive byte by byte, and no byte is
    /// searched twice.
    var isAtLineStart: Bool { searched == lineStart }

    /// Consumes the line being read; the next one starts at `end`.
    mutating func take(lineEndingAt end: Int) {
        lineStart = end
        searched = end
    }

    /// Adds a line that has arrived completely, in one step. Returns false and changes no state if the line is
    /// incomplete or unusual: `nextLine` and `addLine` then find the reason.
    @inline(__always)
    mutating func addWholeLine(in bytes: Span<UInt8>, limit: Int) -> Bool {
        let start = lineStart
        // An empty line is no field line, and content may follow.
        guard isAtLineStart, start < bytes.count, bytes[start] != 0x0d, count < maxLines,
            let colon = bytes.firstIndexOutsideToken(from: start), colon > start, bytes[colon] == UInt8(ascii: ":")
        else { return false }
        var lower = colon &+ 1
        while lower < bytes.count, bytes[lower].isOptionalWhitespace { lower &+= 1 }
        guard let end = bytes.firstIndexOutsideFieldValue(from: lower), end &+ 2 <= limit, bytes.holds("\r\n", at: end)
        else { return false }
        var upper = end
        while upper > lower, bytes[upper &- 1].isOptionalWhitespace { upper &-= 1 }
        let field = KnownField.recognise(bytes.extracting(start..<colon))
        keep(FieldLine(name: ByteRange(start..<colon), value: ByteRange(lower..<upper), field: field))
        take(lineEndingAt: end &+ 2)
        return true
    }

    /// `field-line = field-name ":" OWS field-value OWS` (RFC 9112 §5). `line` is not empty.
    @inline(__always)
    mutating func addLine(_ line: Range<Int>, in bytes: Span<UInt8>) throws(MessageSyntaxError) {
        var colon = line.lowerBound
        while colon < line.upperBound, bytes[colon].isToken { colon &+= 1 }
        guard colon > line.lowerBound, colon < line.upperBound, bytes[colon] == UInt8(ascii: ":") else {
            throw Self.nameError(at: colon, line, bytes)
        }
        var lower = colon &+ 1
        var upper = line.upperBound
        while lower < upper, bytes[lower].isOptionalWhitespace { lower &+= 1 }
        while upper > lower, bytes[upper &- 1].isOptionalWhitespace { upper &-= 1 }
        let value = bytes.extracting(lower..<upper)
        if value.holdsForbiddenInValue { throw MessageSyntaxError(.fieldValueInvalid, at: line.lowerBound) }
        guard count < maxLines else { throw MessageSyntaxError(.tooManyFields, at: line.lowerBound) }
        let field = KnownField.recognise(bytes.extracting(line.lowerBound..<colon))
        keep(FieldLine(name: ByteRange(line.lowerBound..<colon), value: ByteRange(lower..<upper), field: field))
    }

    /// Keeps the lines of `field`, but removes the field from `present`.
    mutating func ignore(_ field: KnownField) { present.remove(FieldSet(field)) }

    @inline(__always)
    private mutating func keep(_ line: FieldLine) {
        if count < memory.count { memory[count] = line } else { memory.append(line) }
        count &+= 1
        present.insert(line.field)
    }

    private static func nameError(at index: Int, _ line: Range<Int>, _ bytes: Span<UInt8>) -> MessageSyntaxError {
        guard index < line.upperBound, bytes[index].isOptionalWhitespace else {
            return MessageSyntaxError(.fieldNameInvalid, at: index)
        }
        // Line folding is obsolete, and refusing it is one of the two allowed responses (RFC 9112 §5.2).
        return MessageSyntaxError(index == line.lowerBound ? .foldedLine : .spaceBeforeColon, at: index)
    }
}

extension Span where Element == UInt8 {
    /// Whether a byte is not allowed in a field value. The loop has no early exit, so that it compiles to vector
    /// instructions.
    @inline(__always)
    var holdsForbiddenInValue: Bool {
        var found: UInt8 = 0
        for index in 0..<count { found |= self[index].forbiddenInValueMask }
        return found != 0
    }
}
