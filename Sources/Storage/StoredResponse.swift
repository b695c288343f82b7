public import Bytes
public import HTTPSemantics
import Synchronization

/// One response, ready to be sent again: immutable except for a two-bit counter of its uses and its place in the store.
///
/// ```
/// loose ─stored, small→ packed
/// ```
///
/// *Loose*: the response has a head and a body of its own, while the body arrives and, if it is large, while it is
/// stored. *Packed*: the stored copy of a small response, with key, fields and body in one block of memory, since the
/// objects of a loose response would take as much memory as a thousand bytes of payload.
///
/// |          | `fieldLines`                       | `bodyLengthOrLineCount` | `looseBody` |
/// | -------- | ---------------------------------- | ----------------------- | ----------- |
/// | loose    | have a block of their own          | number of field lines   | the body    |
/// | packed   | stand between the key and the body | length of the body      | `nil`       |
///
/// Owners: the store, and every client to which the response is being sent. May go to any thread. After a 304, a new
/// object that shares the body takes the response's place (RFC 9111 §4.3.4).
public final class StoredResponse: Sendable {
    /// The largest body, in bytes, that is packed. A hit copies such a body behind the head anyway, and a slow client
    /// keeps no more than this many bytes of an evicted response outside the budget.
    public static let packedBody = 2048

    /// The facts by which the caching rules decide.
    public let facts: ResponseFacts
    /// All stored fields as complete lines, ready to send: without `Age`, `Content-Length`, `Cache-Status` and
    /// `Connection`.
    public let fieldLines: ByteSlice
    private let bodyLengthOrLineCount: UInt32
    /// The response's place in the eviction queues, if the response is its whole resource: see `CachedResource`. Only
    /// read and written under its shard's lock.
    private let slotIndex = Atomic<UInt32>(0)
    // `uses` stands here, where there is room: a byte behind the references would make the object 16 bytes larger.
    private let uses: Atomic<UInt8>
    /// The body of a loose response; `nil` for a packed one.
    public let looseBody: GrowingBody?
    /// Whether key, fields and body are in one block of memory.
    @inlinable public var isPacked: Bool { looseBody == nil }
    /// The variant, the tags and the parts; most responses have none of them.
    private let extras: Extras

    /// - Parameters:
    ///   - head: the fields to store, as complete lines (`StoredFields`).
    ///   - variant: the requests that the response answers; `nil` if the response does not vary.
    ///   - tags: the tags and the cache groups of the response; `nil` if it has none.
    public init(
        head: HeadBlock, facts: ResponseFacts, body: GrowingBody, parts: StoredParts? = nil, variant: Variant? = nil,
        tags: ResponseTags? = nil
    ) {
        self.facts = facts
        extras = Extras(variant, tags, parts: parts)
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

    /// Makes a response with a small, complete body, packed from its start.
    /// - Parameters:
    ///   - key: the key under which the response is to be stored; empty if it is not to be stored.
    ///   - lines: the fields to store, as complete lines (`StoredFields`).
    public init(
        packing lines: Span<UInt8>, body: Span<UInt8>, under key: Span<UInt8>, facts: ResponseFacts,
        variant: Variant? = nil, tags: ResponseTags? = nil
    ) {
        let block = Chunk(capacity: key.count + lines.count + body.count)
        block.write(key, at: 0)
        block.write(lines, at: key.count)
        block.write(body, at: key.count + lines.count)
        self.facts = facts
        fieldLines = ByteSlice(block, key.count..<key.count + lines.count)
        bodyLengthOrLineCount = UInt32(body.count)
        looseBody = nil
        extras = Extras(variant, tags, parts: nil)
        uses = Atomic(0)
    }

    /// A copy of `other` with other facts, which shares its memory.
    init(_ other: StoredResponse, facts: ResponseFacts) {
        self.facts = facts
        fieldLines = other.fieldLines
        bodyLengthOrLineCount = other.bodyLengthOrLineCount
        looseBody = other.looseBody
        extras = other.extras
        uses = Atomic(other.frequency)
    }

    /// A packed copy, if the response is complete and small; otherwise the response itself.
    /// - Parameter key: the key under which the response is stored.
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

    /// The stored fields, for evaluating conditions and for updating. Each call parses the fields of a packed response
    /// anew.
    public var head: HeadBlock {
        isPacked ? HeadBlock(lines: fieldLines) : HeadBlock(of: fieldLines, lineCount: Int(bodyLengthOrLineCount))
    }

    // MARK: - The body

    // A fetch writes into `looseBody`. Readers of a complete body use `pieces`, or `appendPacked`, which is the
    // fastest. Readers that follow an arriving body, and callers that make another response of the body, use
    // `bodyToFollow`.

    /// The body of a loose or a packed response. Each call makes an object for a packed body.
    public func bodyToFollow() -> GrowingBody { looseBody ?? GrowingBody(lending: packedBytes) }

    /// The bytes of a complete body; `nil` in the same cases as `GrowingBody.completePieces`.
    public var pieces: ShortList<ByteSlice>? {
        guard let looseBody else { return ShortList(one: packedBytes) }
        return looseBody.completePieces
    }

    /// Appends the bytes `part` of the body to `output` if the response is packed. Allocates nothing, and retains
    /// nothing.
    /// - Parameter part: within `bodyLength`.
    /// - Returns: false, with nothing appended, if the response is not packed: read `pieces` then.
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

    /// The length of a complete body; `nil` in the same cases as `GrowingBody.completeLength`.
    public var bodyLength: Int? {
        guard let looseBody else { return Int(bodyLengthOrLineCount) }
        return looseBody.completeLength
    }

    /// The trailer section, if the body is complete and had one.
    public var trailers: ByteSlice? { looseBody?.trailers }

    // MARK: - Variant and tags

    /// The requests that the response answers; `nil` if the response does not vary.
    public var variant: Variant? { extras.variant }
    /// The fields that the response's `Vary` nominates. `variantKey` has the values of these fields in the request that
    /// caused the response (RFC 9111 §4.1).
    public var varyRule: VaryRule { variant?.rule ?? .none }
    public var variantKey: VariantKey { variant?.key ?? .none }
    /// Distinguishes most variants of a resource; 0 for a response that does not vary. Computed in each call.
    var variantHash: UInt32 { variant.map { UInt32(truncatingIfNeeded: $0.key.hash) } ?? 0 }
    /// The tags and the cache groups of the response; most responses have none.
    public var tags: ResponseTags? { extras.tags }
    /// Whether no purge of a tag can have reached the response since it was checked.
    func isChecked(at generation: @autoclosure () -> UInt64) -> Bool { extras.areChecked(at: generation()) }

    /// Whether the request with `fields` gets this variant (RFC 9111 §4.1).
    public func answers(_ fields: FieldView) -> Bool { varyRule.isEmpty || variantKey.matches(fields, under: varyRule) }

    /// The order of preference among variants that answer a request. A response that is selected by its coding although
    /// its `Vary` does not say so (`VaryRule.isByCoding`) precedes one that varies. A response that varies precedes one
    /// that does not (RFC 9111 §4.1).
    public enum Precedence: Int, Comparable, Sendable {
        case unvarying, varying, byCoding

        init(_ rule: VaryRule) { self = rule.isEmpty ? .unvarying : rule.isByCoding ? .byCoding : .varying }

        /// Whether `left` is used only if no `right` answers.
        public static func < (left: Precedence, right: Precedence) -> Bool { left.rawValue < right.rawValue }
    }

    /// The response's place in that order.
    public var precedence: Precedence { Precedence(varyRule) }

    /// Whether the response is preferred over a response with `rule` that answers the same request, with any dates.
    public func goesBefore(_ rule: VaryRule) -> Bool { Precedence(rule) < precedence }

    // MARK: - Parts

    /// The stored parts of an incomplete representation; `nil` for a whole one. A response with parts is kept apart
    /// from the whole variants of its resource, and its own body is empty.
    public var parts: StoredParts? { extras.parts }

    /// Whether the body, or the bodies of all parts, are complete.
    public var isAllThere: Bool { parts?.runs.allSatisfy { $0.body.completeLength != nil } ?? (bodyLength != nil) }

    /// This response with other parts, and the head of `other`. If the parts make up the whole, they become its body.
    func with(_ parts: StoredParts, head other: StoredResponse, budget: MemoryBudget) -> StoredResponse {
        let isWhole = parts.isComplete
        return StoredResponse(
            head: other.head, facts: other.facts,
            body: isWhole ? parts.runs[0].body : GrowingBody(joining: [], budget: budget),
            parts: isWhole ? nil : parts, variant: variant, tags: other.tags)
    }

    /// Whether this response's parts and `content`, the part in `other`, belong to one representation (RFC 9111 §3.4).
    func holdsParts(ofSameAs other: StoredResponse, _ content: PartialContent) -> Bool {
        let (own, theirs) = (head, other.head)
        guard var both = parts?.content, PartialContent.mayCombine(own.view, theirs.view) else { return false }
        return both.add(content)
    }

    /// Whether both answer the same requests, so that one replaces the other.
    func isSameVariant(as other: StoredResponse) -> Bool {
        variant == other.variant
    }

    /// The key under which the response is packed; `nil` if it is loose.
    var key: ByteSlice? { isPacked ? ByteSlice(fieldLines.chunk, 0..<fieldLines.start) : nil }

    /// Whether the response can be its whole resource: it contains its key, and does not vary.
    var isWholeResource: Bool { isPacked && extras.variant == nil }

    func isPacked(under other: Span<UInt8>) -> Bool {
        guard isPacked else { return false }
        let block = fieldLines.chunk
        return block.span(0..<fieldLines.start).isEqual(to: other)
    }

    // MARK: - Memory

    /// Bytes of memory, without the bytes that the body accounts for itself, and without the tags, which others may have
    /// too.
    public var overhead: Int {
        let extra = extras.charge
        guard let looseBody else { return Charge.packed + extra + fieldLines.chunk.capacity }
        let lenders = parts?.lenderCount ?? looseBody.lenderCount
        return Charge.response + extra + fieldLines.chunk.capacity + lenders * Charge.lender
    }

    /// Bytes that count against `StorageSettings.objectLimit`: the content, the fields, and a fixed charge for the
    /// objects around them, the same for a packed and a loose response. The response's pieces may have room to spare:
    /// the memory that it takes in all is `size`.
    var objectSize: Int {
        objectSize(content: parts?.runs.reduce(0) { $0 + $1.range.count } ?? bodyLength ?? 0)
    }

    /// `objectSize` of a response that still arrives.
    /// - Parameter content: the size of the content in bytes.
    public func objectSize(content: Int) -> Int {
        Charge.response + (parts?.runs.count ?? 0) * Charge.lender + fieldLines.count + content
    }

    /// The most that `objectSize` can become, computed from the head. A response whose most exceeds the limit is never
    /// stored, and a response whose most does not is never too large.
    /// - Parameters:
    ///   - fields: the fields of the head as it was received.
    ///   - content: the announced number of bytes.
    ///   - stored: the stored parts to which the content is added; `nil` if there are none: the content is then a part
    ///     or the whole.
    public static func mostObjectSize(_ fields: FieldView, content: Int, partOf stored: StoredResponse?) -> Int {
        // A `Date` is added if the head has none. The head of a part also gets the stored fields.
        var head = dateLine + (stored?.fieldLines.count ?? 0)
        if !fields.lines.isEmpty {
            // From the first name to the end of the last value, with a line end, and one space more for each colon.
            let (first, last) = (fields.lines[0], fields.lines[fields.lines.count - 1])
            head += Int(last.value.upper) - Int(first.name.lower) + 2 + fields.lines.count
        }
        let content = content.addingReportingOverflow(Charge.response + Charge.lender + head)
        return content.overflow ? .max : content.partialValue
    }

    /// Bytes of `Date: Thu, 01 Jan 1970 00:00:00 GMT`, with its line end.
    private static let dateLine = 37

    /// Bytes that the body accounts for itself.
    public var retained: Int {
        guard let looseBody else { return 0 }
        return parts?.retained ?? looseBody.retained
    }

    /// Bytes of memory in total.
    public var size: Int { overhead + retained }

    /// Whether bytes of the response that the budget counts are being sent to a client.
    public var isRead: Bool {
        guard let parts else { return looseBody?.isRead ?? false }
        return parts.runs.contains { $0.body.isRead }
    }

    /// The bodies that account for the response's bytes; none if it is packed.
    public var bodies: ShortList<GrowingBody> {
        guard let parts else { return looseBody.map { ShortList(one: $0) } ?? ShortList() }
        return ShortList(parts.runs.map(\.body))
    }

    /// Notes that the store holds the response once more. From now on, bytes that are not being sent are resting
    /// (`GrowingBody.beginStoring`).
    func beginStoring(under key: CacheKey) {
        var overhead = overhead + Charge.resource + key.bytes.count
        for body in bodies {
            body.beginStoring(overhead: overhead)
            // The overhead counts once.
            overhead = 0
        }
    }

    /// Notes that the store holds the response once less.
    func endStoring() { for body in bodies { body.endStoring() } }

    var slot: EvictionSlot { EvictionSlot(index: slotIndex.load(ordering: .relaxed)) }
    func stand(at slot: EvictionSlot) { slotIndex.store(slot.index, ordering: .relaxed) }

    // MARK: - Popularity

    /// The highest value of the two-bit counter.
    static let highestFrequency: UInt8 = 3

    /// The counter of the response's uses, 0 to `highestFrequency`.
    public var frequency: UInt8 { uses.load(ordering: .relaxed) }

    /// Counts a use: the response was sent to a client. Call this once a hit. A popular response's counter is full and
    /// is not written again.
    public func noteUse() {
        // Two clients at once may count as one, which is harmless. A full counter is only read, so that its cache line
        // stays shared between the cores.
        let count = uses.load(ordering: .relaxed)
        if count < Self.highestFrequency { uses.store(count + 1, ordering: .relaxed) }
    }

    /// - Parameter frequency: 0 to `highestFrequency`.
    public func setFrequency(_ frequency: UInt8) { uses.store(frequency, ordering: .relaxed) }
}
