public import Bytes

/// The fields of one message with the bytes they stand in: immutable, and free to go to any thread.
///
/// All in one block of memory, so that keeping one, or copying a reference to it, costs no more than for the bytes
/// alone:
///
/// ```
/// ├─ lines ─┼─ bytes ─┤
/// ```
public struct HeadBlock: Sendable {
    /// The head; every range of `lines` counts from its first byte.
    public let bytes: ByteSlice
    /// How many lines there are.
    public let lineCount: Int
    /// The known fields that occur at least once.
    public let present: FieldSet

    /// - Parameters:
    ///   - block: `lineCount` lines from its first byte on, and `bytes`.
    ///   - bytes: within it.
    init(_ block: Chunk, lineCount: Int, bytes: Range<Int>, present: FieldSet) {
        self.bytes = ByteSlice(block, bytes)
        self.lineCount = lineCount
        self.present = present
    }

    /// Makes the block again from its bytes and its number of lines.
    /// - Parameter bytes: of a `HeadBlock`, as they stand in its block.
    public init(of bytes: ByteSlice, lineCount: Int) {
        self.bytes = bytes
        self.lineCount = lineCount
        var present: FieldSet = []
        let lines = bytes.chunk.values(FieldLine.self, at: 0, count: lineCount)
        for index in 0..<lineCount { present.insert(FieldSet(lines[index].field)) }
        self.present = present
    }

    /// A copy of `bytes` and `lines`, whose ranges count from the first of them.
    public init(bytes: Span<UInt8>, lines: Span<FieldLine>, present: FieldSet) {
        let start = Self.room(forLines: lines.count)
        let block = Chunk(capacity: start + bytes.count)
        block.write(values: lines, at: 0)
        block.write(bytes, at: start)
        self.init(block, lineCount: lines.count, bytes: start..<start + bytes.count, present: present)
    }

    /// A copy of what `view` shows. The ranges stay as they are.
    public init(copying view: FieldView) { self.init(bytes: view.bytes, lines: view.lines, present: view.present) }

    /// A copy without the lines of `fields`. All bytes stay, and so do the ranges of the other lines.
    public func without(_ fields: FieldSet) -> HeadBlock {
        let all = lines
        var kept: [FieldLine] = []
        for index in 0..<all.count where !fields.contains(all[index].field) { kept.append(all[index]) }
        return HeadBlock(bytes: bytes.span, lines: kept.span, present: present.subtracting(fields))
    }

    /// Bytes that the lines take.
    static func room(forLines count: Int) -> Int { count * MemoryLayout<FieldLine>.stride }

    /// The lines in the order of the message.
    @inlinable
    public var lines: Span<FieldLine> {
        @inline(__always)
        @_lifetime(borrow self)
        get { bytes.chunk.values(FieldLine.self, at: 0, count: lineCount) }
    }

    /// A view of the block, which all rules take.
    @inlinable
    public var view: FieldView {
        @_lifetime(borrow self)
        get { FieldView(bytes: bytes.span, lines: lines, present: present) }
    }
}
