internal import Bytes
internal import HTTPSemantics

/// What a response varies by and belongs to. Most responses have none of it.
final class Nominations: Sendable {
    let varyRule: VaryRule
    let variantKey: VariantKey
    let groups: [String]

    init(varyRule: VaryRule, variantKey: VariantKey, groups: [String]) {
        self.varyRule = varyRule
        self.variantKey = variantKey
        self.groups = groups
    }

    /// Bytes of memory.
    var charge: Int { Charge.nominations + groups.count * Charge.nominee }
}

/// The inside of a response that has a head and a body of its own.
final class LooseResponse: Sendable {
    let head: HeadBlock
    let body: GrowingBody
    let parts: StoredParts?
    let nominations: Nominations?

    init(head: HeadBlock, body: GrowingBody, parts: StoredParts?, nominations: Nominations?) {
        self.head = head
        self.body = body
        self.parts = parts
        self.nominations = nominations
    }
}

/// The inside of a small stored response: one block of memory, cut by three lengths.
///
/// ```
/// ├─ key ─┼─ field lines ─┼─ body ─┤
/// ```
struct PackedResponse: Sendable {
    let block: Chunk
    let keyCount: UInt32
    let fieldsCount: UInt32
    let bodyCount: UInt32
    let nominations: Nominations?

    /// Copies all of it.
    init(key: Span<UInt8>, fieldLines: ByteSlice, _ body: [ByteSlice], bodyLength: Int, nominations: Nominations?) {
        block = Chunk(capacity: key.count + fieldLines.count + bodyLength)
        block.write(key, at: 0)
        block.write(fieldLines.span, at: key.count)
        var end = key.count + fieldLines.count
        for piece in body {
            block.write(piece.span, at: end)
            end += piece.count
        }
        keyCount = UInt32(key.count)
        fieldsCount = UInt32(fieldLines.count)
        bodyCount = UInt32(bodyLength)
        self.nominations = nominations
    }

    @inline(__always) private var fieldsEnd: Int { Int(keyCount) &+ Int(fieldsCount) }

    var key: ByteSlice { ByteSlice(block, 0..<Int(keyCount)) }
    var fieldLines: ByteSlice { ByteSlice(block, Int(keyCount)..<fieldsEnd) }
    @inline(__always) var body: ByteSlice { ByteSlice(block, fieldsEnd..<fieldsEnd + Int(bodyCount)) }
}
