public import Bytes

/// The fields of one message with their bytes: immutable, and usable on any thread.
///
/// One block of memory holds both, so that keeping it, or copying a reference to it, costs no more than for the bytes
/// alone:
///
/// ```
/// ├─ lines ─┼─ bytes ─┤
/// ```
public struct HeadBlock: Sendable {
    /// The head; the ranges in `lines` are offsets into it.
    public let bytes: ByteSlice
    /// The number of lines.
    public let lineCount: Int
    /// The known fields that occur at least once.
    public let present: FieldSet

    /// - Parameters:
    ///   - block: `lineCount` lines from its first byte on, and `bytes`.
    ///   - bytes: a range of `block`.
    init(_ block: Chunk, lineCount: Int, bytes: Range<Int>, present: FieldSet) {
        self.bytes = ByteSlice(block, bytes)
        self.lineCount = lineCount
        self.present = present
    }

    /// Recreates the block from its bytes and its number of lines.
    /// - Parameter bytes: the `bytes` of a `HeadBlock`, still in its chunk.
    public init(of bytes: ByteSlice, lineCount: Int) {
        self.bytes = bytes
        self.lineCount = lineCount
        var present: FieldSet = []
        let lines = bytes.chunk.values(FieldLine.self, at: 0, count: lineCount)
        for index in 0..<lineCount { present.insert(FieldSet(lines[index].field)) }
        self.present = present
    }

    /// Copies `bytes` and `lines`; the ranges in `lines` are offsets into `bytes`.
    public init(bytes: Span<UInt8>, lines: Span<FieldLine>, present: FieldSet) {
        let start = Self.room(forLines: lines.count)
        let block = Chunk(capacity: start + bytes.count)
        block.write(values: lines, at: 0)
        block.write(bytes, at: start)
        self.init(block, lineCount: lines.count, bytes: start..<start + bytes.count, present: present)
    }

    /// Copies the bytes and lines of `view`. The ranges stay the same.
    public init(copying view: FieldView) { self.init(bytes: view.bytes, lines: view.lines, present: view.present) }

    /// A copy without the lines of `fields`. All bytes stay, and so do the ranges of the other lines.
    public func without(_ fields: FieldSet) -> HeadBlock {
        let all = lines
        var kept: [FieldLine] = []
        for index in 0..<all.count where !fields.contains(all[index].field) { kept.append(all[index]) }
        return HeadBlock(bytes: bytes.span, lines: kept.span, present: present.subtracting(fields))
    }

    /// The size of `count` lines in bytes.
    static func room(forLines count: Int) -> Int { count * MemoryLayout<FieldLine>.stride }

    /// The lines in the order of the message.
    @inlinable
    public var lines: Span<FieldLine> {
        @inline(__always)
        @_lifetime(borrow self)
        get { bytes.chunk.values(FieldLine.self, at: 0, count: lineCount) }
    }

    /// A view of the block, as the rules take it.
    @inlinable
    public var view: FieldView {
        @_lifetime(borrow self)
        @inline(__always)
        get { FieldView(bytes: bytes.span, lines: lines, present: present) }
    }
}

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
