public import Bytes
public import HTTPSemantics
import Synchronization

/// One response, ready to be sent again: immutable except for a two-bit counter of its uses and its place in the store.
///
/// ```
/// loose ─stored, small→ packed
/// ```
///
/// *Loose*, with a head and a body of its own, while the body arrives and, where it is large, as long as it is stored.
/// *Packed* is the copy that is stored of a small one: key, fields and body in one block of memory, since a thousand
/// bytes of payload deserve no thousand bytes of objects around them.
///
/// |          | `fieldLines`                       | `bodyLengthOrLineCount` | `looseBody` |
/// | -------- | ---------------------------------- | ----------------------- | ----------- |
/// | loose    | have a block of their own          | number of field lines   | the body    |
/// | packed   | stand between the key and the body | length of the body      | `nil`       |
///
/// Owners: the store, and every client it is being sent to. May go to any thread. After a 304, another one that shares
/// its body takes its place (RFC 9111 §4.3.4).
public final class StoredResponse: Sendable {
    /// Largest body that is packed. A hit of one copies it behind its head anyway; and a client that reads slowly keeps
    /// no more than this of what was evicted beside the budget.
    public static let packedBody = 2048

    /// What the rules go by.
    public let facts: ResponseFacts
    /// All stored fields as complete lines, ready to send: without `Age`, `Content-Length`, `Cache-Status` and
    /// `Connection`.
    public let fieldLines: ByteSlice
    private let bodyLengthOrLineCount: UInt32
    /// Where it stands in the eviction queues, if it is all there is of its resource: see `CachedResource`. Only read
    /// and written under its shard's lock.
    private let slotIndex = Atomic<UInt32>(0)
    // Here, where there is room: a byte behind the references would make the object 16 larger.
    private let uses: Atomic<UInt8>
    /// The body, where it is kept by itself; `nil` where the response is packed.
    public let looseBody: GrowingBody?
    /// Whether key, fields and body are in one block of memory.
    @inlinable public var isPacked: Bool { looseBody == nil }
    /// What it varies by and belongs to, and its parts; `nil` where it has none of that, as most.
    private let extras: Extras?

    /// - Parameters:
    ///   - head: the fields that are stored, as complete lines (`StoredFields`).
    ///   - variant: for which requests it is; `nil` where nothing varies.
    ///   - groups: the cache groups it belongs to (RFC 9875).
    public init(
        head: HeadBlock, facts: ResponseFacts, body: GrowingBody, parts: StoredParts? = nil, variant: Variant? = nil,
        groups: CacheGroups? = nil
    ) {
        self.facts = facts
        extras = .of(variant, groups, parts: parts)
        fieldLines = head.bytes
        bodyLengthOrLineCount = UInt32(head.lineCount)
        looseBody = body
        uses = Atomic(0)
    }

    /// A copy of `loose`, whose body is `pieces`, in one block with its key.
    private init(packing loose: StoredResponse, under key: Span<UInt8>, _ pieces: ShortList<ByteSlice>, bodyLength: Int)
    {
        let lines = loose.fieldLines
        let block = Chunk(capacity: key.count + lines.count + bodyLength)
        block.write(key, at: 0)
        block.write(lines.span, at: key.count)
        var end = key.count + lines.count
        for piece in pieces {
            block.write(piece.span, at: end)
            end += piece.count
        }
        facts = loose.facts
        fieldLines = ByteSlice(block, key.count..<key.count + lines.count)
        bodyLengthOrLineCount = UInt32(bodyLength)
        looseBody = nil
        extras = loose.extras
        uses = Atomic(loose.frequency)
    }

    /// Makes a response whose body is all there and small: packed from its start.
    /// - Parameters:
    ///   - key: under which it is to be stored; empty where it is not.
    ///   - lines: the fields that are stored, as complete lines (`StoredFields`).
    public init(
        packing lines: Span<UInt8>, body: Span<UInt8>, under key: Span<UInt8>, facts: ResponseFacts,
        variant: Variant? = nil, groups: CacheGroups? = nil
    ) {
        let block = Chunk(capacity: key.count + lines.count + body.count)
        block.write(key, at: 0)
        block.write(lines, at: key.count)
        block.write(body, at: key.count + lines.count)
        self.facts = facts
        fieldLines = ByteSlice(block, key.count..<key.count + lines.count)
        bodyLengthOrLineCount = UInt32(body.count)
        looseBody = nil
        extras = .of(variant, groups, parts: nil)
        uses = Atomic(0)
    }

    /// A packed copy, if the response is complete and small; otherwise the response itself.
    /// - Parameter key: under which it is stored.
    func packed(under key: CacheKey) -> StoredResponse {
        let key = key.bytes
        guard !isPacked(under: key.span), let pieces, let bodyLength, bodyLength <= Self.packedBody, trailers == nil,
            parts == nil
        else {
            return self
        }
        return StoredResponse(packing: self, under: key.span, pieces, bodyLength: bodyLength)
    }

    // MARK: - The head

    /// The stored fields, for conditions and freshening. Found anew with each call where they are packed.
    public var head: HeadBlock {
        isPacked ? HeadBlock(lines: fieldLines) : HeadBlock(of: fieldLines, lineCount: Int(bodyLengthOrLineCount))
    }

    // MARK: - The body

    // Its fetch writes into `looseBody`. Who reads what is complete takes `pieces`, or `appendPacked`, the quickest. Who
    // reads along, or makes another response of it, takes `bodyToFollow`.

    /// The body, however it is kept. An object is made for it with each call where it is packed.
    public func bodyToFollow() -> GrowingBody { looseBody ?? GrowingBody(lending: packedBytes) }

    /// The bytes of a complete body; `nil` like `GrowingBody.completePieces`.
    public var pieces: ShortList<ByteSlice>? {
        guard let looseBody else { return ShortList(one: packedBytes) }
        return looseBody.completePieces
    }

    /// Appends the bytes `part` of the body to `output` if it is packed. Allocates nothing, and retains nothing.
    /// - Parameter part: within `bodyLength`.
    /// - Returns: false, and nothing is appended, where it is not packed: `pieces` has it.
    public func appendPacked(_ part: Range<Int>, to output: ByteBuffer) -> Bool {
        guard isPacked else { return false }
        precondition(part.lowerBound >= 0 && part.upperBound <= Int(bodyLengthOrLineCount), "a part outside its body")
        let (block, start) = (fieldLines.chunk, fieldLines.end)
        output.append(block.span(start + part.lowerBound..<start + part.upperBound))
        return true
    }

    private var packedBytes: ByteSlice {
        ByteSlice(fieldLines.chunk, fieldLines.end..<fieldLines.end + Int(bodyLengthOrLineCount))
    }

    /// The length of a complete body; `nil` like `GrowingBody.completeLength`.
    public var bodyLength: Int? {
        guard let looseBody else { return Int(bodyLengthOrLineCount) }
        return looseBody.completeLength
    }

    /// The trailer section, when the body is complete and had one.
    public var trailers: ByteSlice? { looseBody?.trailers }

    // MARK: - What it is for

    /// For which requests it is; `nil` where nothing varies.
    public var variant: Variant? { extras?.variant }
    /// What its `Vary` nominates, and what the request that caused it said there (RFC 9111 §4.1).
    public var varyRule: VaryRule { variant?.rule ?? .none }
    public var variantKey: VariantKey { variant?.key ?? .none }
    /// Tells it from most other variants of its resource; 0 where nothing varies. Worked out with each call.
    var variantHash: UInt32 { variant.map { UInt32(truncatingIfNeeded: $0.key.hash) } ?? 0 }
    /// The cache groups it belongs to (RFC 9875); mostly none.
    public var groups: CacheGroups? { extras?.groups }

    /// Whether the request with `fields` gets this variant (RFC 9111 §4.1).
    public func answers(_ fields: FieldView) -> Bool { varyRule.isEmpty || variantKey.matches(fields, under: varyRule) }

    /// Which goes first of several that answer a request: what is encoded, though `Vary` does not say that it varies by
    /// that (`VaryRule.isByCoding`), before what varies, before what does not (RFC 9111 §4.1).
    public enum Precedence: Int, Comparable, Sendable {
        case unvarying, varying, byCoding

        init(_ rule: VaryRule) { self = rule.isEmpty ? .unvarying : rule.isByCoding ? .byCoding : .varying }

        /// Whether `left` is looked for only where no `right` answers.
        public static func < (left: Precedence, right: Precedence) -> Bool { left.rawValue < right.rawValue }
    }

    /// By what it varies.
    public var precedence: Precedence { Precedence(varyRule) }

    /// Whether it goes before a response with `rule` that answers the same request, whatever their dates.
    public func goesBefore(_ rule: VaryRule) -> Bool { Precedence(rule) < precedence }

    // MARK: - Parts

    /// What is there of a representation that is not there whole. Such a response stands beside the variants of its
    /// resource, never among them, and its own body is empty.
    public var parts: StoredParts? { extras?.parts }

    /// Whether nothing of it still arrives.
    public var isAllThere: Bool { parts?.runs.allSatisfy { $0.body.completeLength != nil } ?? (bodyLength != nil) }

    /// This response with other parts, and the head of `other`; its body is the whole once the parts make it up.
    func with(_ parts: StoredParts, head other: StoredResponse, budget: MemoryBudget) -> StoredResponse {
        let isWhole = parts.isComplete
        return StoredResponse(
            head: other.head, facts: other.facts,
            body: isWhole ? parts.runs[0].body : GrowingBody(joining: [], budget: budget),
            parts: isWhole ? nil : parts, variant: variant, groups: other.groups)
    }

    /// Whether its parts and `content` of `other` are parts of one representation (RFC 9111 §3.4).
    func holdsParts(ofSameAs other: StoredResponse, _ content: PartialContent) -> Bool {
        let (own, theirs) = (head, other.head)
        guard var both = parts?.content, PartialContent.mayCombine(own.view, theirs.view) else { return false }
        return both.add(content)
    }

    /// Whether both answer the same requests, so that one takes the other's place.
    func isSameVariant(as other: StoredResponse) -> Bool {
        variant == other.variant
    }

    /// The key it is packed under; `nil` where it is loose.
    var key: ByteSlice? { isPacked ? ByteSlice(fieldLines.chunk, 0..<fieldLines.start) : nil }

    /// Whether it can be all there is of its resource: it tells its key, and varies by nothing.
    var canStandAlone: Bool { isPacked && extras?.variant == nil }

    func isPacked(under other: Span<UInt8>) -> Bool {
        guard isPacked else { return false }
        let block = fieldLines.chunk
        return block.span(0..<fieldLines.start).isEqual(to: other)
    }

    // MARK: - Memory

    /// Bytes of memory beside those that the body accounts for itself.
    public var overhead: Int {
        let extra = extras?.charge ?? 0
        guard let looseBody else { return Charge.packed + extra + fieldLines.chunk.capacity }
        let lenders = parts?.lenderCount ?? looseBody.lenderCount
        return Charge.response + extra + fieldLines.chunk.capacity + lenders * Charge.lender
    }

    /// Bytes that count against `StorageSettings.objectLimit`: of what is stored its content, its fields, and a share for
    /// what is kept beside them, the same whether it is packed or not. Its pieces may have room to spare: what it takes in
    /// all is `size`.
    var objectSize: Int {
        objectSize(content: parts?.runs.reduce(0) { $0 + $1.range.count } ?? bodyLength ?? 0)
    }

    /// The same for what is still arriving.
    /// - Parameter content: bytes.
    public func objectSize(content: Int) -> Int {
        Charge.response + (parts?.runs.count ?? 0) * Charge.lender + fieldLines.count + content
    }

    /// The most that `objectSize` may come to, told by the head: what is larger than that allows is never stored, and
    /// what is not is never too large.
    /// - Parameters:
    ///   - fields: of the head as it was received.
    ///   - content: bytes that are announced.
    ///   - partOf: the stored parts that the content goes with; it is a part itself, or the whole, where there are none.
    public static func mostObjectSize(_ fields: FieldView, content: Int, partOf stored: StoredResponse?) -> Int {
        // A date is added where there is none. A part has the stored fields, too.
        var head = dateLine + (stored?.fieldLines.count ?? 0)
        if !fields.lines.isEmpty {
            // From the first name to behind the last value, with a line end, and a space behind each colon.
            let (first, last) = (fields.lines[0], fields.lines[fields.lines.count - 1])
            head += Int(last.value.upper) - Int(first.name.lower) + 2 + fields.lines.count
        }
        let content = content.addingReportingOverflow(Charge.response + Charge.lender + head)
        return content.overflow ? .max : content.partialValue
    }

    /// `Date: Thu, 01 Jan 1970 00:00:00 GMT`, with its line end.
    private static let dateLine = 37

    /// Bytes that the body accounts for itself.
    public var retained: Int {
        guard let looseBody else { return 0 }
        return parts?.retained ?? looseBody.retained
    }

    /// Bytes of memory in all.
    public var size: Int { overhead + retained }

    /// Whether some client is being sent bytes of it that the budget counts.
    public var isRead: Bool {
        guard let parts else { return looseBody?.isRead ?? false }
        return parts.runs.contains { $0.body.isRead }
    }

    /// The bodies that account for its bytes; none where it is packed.
    public var bodies: ShortList<GrowingBody> {
        guard let parts else { return looseBody.map { ShortList(one: $0) } ?? ShortList() }
        return ShortList(parts.runs.map(\.body))
    }

    /// Notes that the store has it, once more: what nobody reads of it comes to rest (`GrowingBody.beginStoring`).
    func beginStoring(under key: CacheKey) {
        var overhead = overhead + Charge.resource + key.bytes.count
        for body in bodies {
            body.beginStoring(overhead: overhead)
            // Once.
            overhead = 0
        }
    }

    /// Notes that the store gives it up, once.
    func endStoring() { for body in bodies { body.endStoring() } }

    var slot: EvictionSlot { EvictionSlot(index: slotIndex.load(ordering: .relaxed)) }
    func stand(at slot: EvictionSlot) { slotIndex.store(slot.index, ordering: .relaxed) }

    // MARK: - Popularity

    /// The most that the two bits of the counter hold.
    static let highestFrequency: UInt8 = 3

    /// The counter of its uses, 0 to `highestFrequency`.
    public var frequency: UInt8 { uses.load(ordering: .relaxed) }

    /// Counts a use: it was sent to somebody. Call this once a hit; a popular response's counter is full and is not
    /// written again.
    public func noteUse() {
        // Two clients at once may count as one, which is harmless; and the cache line stays shared between the cores.
        let count = uses.load(ordering: .relaxed)
        if count < Self.highestFrequency { uses.store(count + 1, ordering: .relaxed) }
    }

    /// - Parameter frequency: 0 to `highestFrequency`.
    public func setFrequency(_ frequency: UInt8) { uses.store(frequency, ordering: .relaxed) }
}
