public import Bytes
public import HTTPSemantics
internal import Synchronization

/// One complete response, ready to be sent again: immutable but for a two-bit counter of its uses.
///
/// Owner: the store, and every client it is being sent to. Free to go to any thread. After a 304 another one takes its
/// place that shares the body (RFC 9111 §4.3.4).
public final class StoredResponse: Sendable, EvictionCandidate {
    /// Status line and all stored fields, ready to send, without `Age`, `Cache-Status`, `Connection` and the empty line.
    public let readyHead: ByteSlice
    /// The stored fields, for conditions and freshening.
    public let head: HeadBlock
    public let facts: ResponseFacts
    /// Complete, and whole.
    public let body: GrowingBody
    /// What its `Vary` nominates, and what the request that caused it said there (RFC 9111 §4.1).
    public let varyRule: VaryRule
    public let variantKey: VariantKey
    /// The cache groups it belongs to (RFC 9875); mostly none.
    public let groups: [String]
    private let uses: Atomic<UInt8>

    public init(
        readyHead: ByteSlice, head: HeadBlock, facts: ResponseFacts, body: GrowingBody,
        varyRule: VaryRule = .none, variantKey: VariantKey = .none, groups: [String] = []
    ) {
        self.readyHead = readyHead
        self.head = head
        self.facts = facts
        self.body = body
        self.varyRule = varyRule
        self.variantKey = variantKey
        self.groups = groups
        uses = Atomic(0)
    }

    public var status: Status { facts.status }

    /// Bytes of memory beside the body, which accounts for itself.
    public var overhead: Int {
        let isOneChunk = readyHead.chunk.isSame(as: head.bytes.chunk)
        return Charge.response + readyHead.chunk.capacity + (isOneChunk ? 0 : head.bytes.chunk.capacity)
            + head.lines.capacity * Charge.line
    }

    /// Bytes of memory in all.
    public var size: Int { overhead + body.retained }

    /// Whether both answer the same requests, so that one takes the other's place.
    func isSameVariant(as other: StoredResponse) -> Bool {
        variantKey == other.variantKey && varyRule == other.varyRule
    }

    // MARK: - Popularity

    /// 0 to 3.
    public var frequency: UInt8 { uses.load(ordering: .relaxed) }

    /// It was sent to somebody. Call it once a hit; a popular response's counter is full and is not written again.
    public func noteUse() {
        // Two clients at once may count as one: nobody is harmed, and the line stays shared between the cores.
        let count = uses.load(ordering: .relaxed)
        if count < 3 { uses.store(count + 1, ordering: .relaxed) }
    }

    public func setFrequency(_ frequency: UInt8) { uses.store(frequency, ordering: .relaxed) }
}
