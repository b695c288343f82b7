public import Bytes
public import HTTPSemantics
internal import Synchronization

/// One response, ready to be sent again: immutable but for a two-bit counter of its uses and its place in the store.
///
/// ```
/// loose ─stored, small→ packed
/// ```
///
/// *Loose*, with a head and a body of its own, while the body arrives and, where it is large, as long as it is stored. *Packed* is the copy
/// that is stored of a small one: key, fields and body in one block of memory, since a thousand bytes of payload deserve no thousand bytes of
/// objects around them.
///
/// Owner: the store, and every client it is being sent to. Free to go to any thread. After a 304 another one takes its
/// place that shares the body (RFC 9111 §4.3.4).
public final class StoredResponse: Sendable, EvictionCandidate {
    /// Largest body that is packed. A hit of one copies it behind its head anyway; and a client that reads slowly keeps
    /// no more than this of what was evicted beside the budget.
    public static let packedBody = 2048

    private enum Form {
        case loose(LooseResponse)
        case packed(PackedResponse)
    }

    /// What the rules go by.
    public let facts: ResponseFacts
    private let form: Form
    /// Where it stands in the eviction queues, if it is all there is of its resource: see `CachedResource`. Only read and written under
    /// its shard's lock.
    private let place = Atomic<UInt32>(0)
    private let uses: Atomic<UInt8>

    /// - Parameters:
    ///   - head: the fields that are stored, as complete lines (`StoredFields`).
    ///   - varyRule: what its `Vary` nominates, and `variantKey` what the request that caused it said there (RFC 9111 §4.1).
    ///   - groups: the cache groups it belongs to (RFC 9875).
    public init(
        head: HeadBlock, facts: ResponseFacts, body: GrowingBody, parts: StoredParts? = nil, varyRule: VaryRule = .none,
        variantKey: VariantKey = .none, groups: [String] = []
    ) {
        self.facts = facts
        let nominations = varyRule.isEmpty && groups.isEmpty
            ? nil : Nominations(varyRule: varyRule, variantKey: variantKey, groups: groups)
        form = .loose(LooseResponse(head: head, body: body, parts: parts, nominations: nominations))
        uses = Atomic(0)
    }

    private init(_ packed: PackedResponse, facts: ResponseFacts, frequency: UInt8) {
        self.facts = facts
        form = .packed(packed)
        uses = Atomic(frequency)
    }

    /// The packed copy of a complete and small response, itself if it is neither.
    /// - Parameter key: under which it is stored.
    func packed(under key: Span<UInt8>) -> StoredResponse {
        guard let pieces, let bodyLength, bodyLength <= Self.packedBody, trailers == nil, parts == nil else { return self }
        let packed = PackedResponse(key: key, fieldLines: fieldLines, pieces, bodyLength: bodyLength, nominations: nominations)
        return StoredResponse(packed, facts: facts, frequency: frequency)
    }

    /// Of the response; 200 where it stands for parts.
    public var status: Status { facts.status }

    // MARK: - The head

    /// All stored fields as complete lines, ready to send: without `Age`, `Content-Length`, `Cache-Status` and `Connection`.
    public var fieldLines: ByteSlice {
        switch form {
        case .loose(let loose): loose.head.bytes
        case .packed(let packed): packed.fieldLines
        }
    }

    /// The stored fields, for conditions and freshening. Found anew with each call where they are packed.
    public var head: HeadBlock {
        switch form {
        case .loose(let loose): loose.head
        case .packed(let packed): HeadBlock(lines: packed.fieldLines)
        }
    }

    // MARK: - The body

    /// The body to follow. Made anew with each call where it is packed: `pieces` does without.
    public var body: GrowingBody {
        switch form {
        case .loose(let loose): loose.body
        case .packed(let packed): GrowingBody(lending: packed.body)
        }
    }

    /// The bytes of a complete body; `nil` like `GrowingBody.completePieces`.
    public var pieces: [ByteSlice]? {
        switch form {
        case .loose(let loose): loose.body.completePieces
        case .packed(let packed): [packed.body]
        }
    }

    /// The bytes of a body that is packed. Allocates nothing.
    public var smallBody: ByteSlice? {
        switch form {
        case .loose: nil
        case .packed(let packed): packed.body
        }
    }

    /// The length of a complete body; `nil` like `GrowingBody.completeLength`.
    public var bodyLength: Int? {
        switch form {
        case .loose(let loose): loose.body.completeLength
        case .packed(let packed): Int(packed.bodyCount)
        }
    }

    /// The trailer section, when the body is complete and had one.
    public var trailers: ByteSlice? {
        switch form {
        case .loose(let loose): loose.body.trailers
        case .packed: nil
        }
    }

    // MARK: - What it is for

    private var nominations: Nominations? {
        switch form {
        case .loose(let loose): loose.nominations
        case .packed(let packed): packed.nominations
        }
    }

    /// What its `Vary` nominates, and what the request that caused it said there (RFC 9111 §4.1).
    public var varyRule: VaryRule { nominations?.varyRule ?? .none }
    public var variantKey: VariantKey { nominations?.variantKey ?? .none }
    /// The cache groups it belongs to (RFC 9875); mostly none.
    public var groups: [String] { nominations?.groups ?? [] }
    public var hasGroups: Bool { nominations.map { !$0.groups.isEmpty } ?? false }

    // MARK: - Parts

    /// What is there of a representation that is not there whole; then this stands beside the variants of its resource, never among them, and
    /// `body` is empty.
    public var parts: StoredParts? {
        switch form {
        case .loose(let loose): loose.parts
        case .packed: nil
        }
    }

    /// The same with other parts; `body` is the whole once they make it up.
    func with(_ parts: StoredParts, head other: StoredResponse, budget: MemoryBudget) -> StoredResponse {
        let isWhole = parts.isComplete
        return StoredResponse(
            head: other.head, facts: other.facts, body: isWhole ? parts.runs[0].body : GrowingBody(joining: [], budget: budget),
            parts: isWhole ? nil : parts, varyRule: varyRule, variantKey: variantKey, groups: other.groups)
    }

    /// Whether its parts and `content` of `other` are parts of one representation (RFC 9111 §3.4).
    func holdsParts(ofSameAs other: StoredResponse, _ content: PartialContent) -> Bool {
        let (own, theirs) = (head, other.head)
        guard var both = parts?.content, PartialContent.mayCombine(own.view, theirs.view) else { return false }
        return both.add(content)
    }

    /// Whether both answer the same requests, so that one takes the other's place.
    func isSameVariant(as other: StoredResponse) -> Bool {
        variantKey == other.variantKey && varyRule == other.varyRule
    }

    /// The key it is packed under.
    var key: ByteSlice? {
        switch form {
        case .loose: nil
        case .packed(let packed): packed.key
        }
    }

    func isPacked(under other: Span<UInt8>) -> Bool {
        guard case .packed(let packed) = form else { return false }
        let block = packed.block
        return block.span(0..<Int(packed.keyCount)).isEqual(to: other)
    }

    // MARK: - Memory

    /// Bytes of memory beside those that the body accounts for itself.
    public var overhead: Int {
        let nominated = nominations?.charge ?? 0
        switch form {
        case .loose(let loose):
            let lenders = loose.parts?.lenderCount ?? loose.body.lenderCount
            return Charge.response + nominated + loose.head.bytes.chunk.capacity + loose.head.lines.capacity * Charge.line
                + lenders * Charge.lender
        case .packed(let packed): return Charge.packed + nominated + packed.block.capacity
        }
    }

    /// Bytes that the body accounts for itself.
    public var retained: Int {
        switch form {
        case .loose(let loose): loose.parts?.retained ?? loose.body.retained
        case .packed: 0
        }
    }

    /// Bytes of memory in all.
    public var size: Int { overhead + retained }

    var slot: EvictionSlot { EvictionSlot(index: place.load(ordering: .relaxed)) }
    func stand(at slot: EvictionSlot) { place.store(slot.index, ordering: .relaxed) }

    // MARK: - Popularity

    /// 0 to 3.
    public var frequency: UInt8 { uses.load(ordering: .relaxed) }

    /// It was sent to somebody. Call it once a hit; a popular response's counter is full and is not written again.
    public func noteUse() {
        // Two clients at once may count as one: nobody is harmed, and the line stays shared between the cores.
        let count = uses.load(ordering: .relaxed)
        if count < 3 { uses.store(count + 1, ordering: .relaxed) }
    }

    /// - Parameter frequency: 0 to 3.
    public func setFrequency(_ frequency: UInt8) { uses.store(frequency, ordering: .relaxed) }
}
