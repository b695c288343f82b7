import Bytes

/// What is on its way to one client: the response to the request under way, and whether another may follow.
///
/// Held inline by its `ClientConnection`, which writes; plain hits, which the kernel takes whole, pass it by
/// (`HitPath`), except that it knows which of them are held back. Only here is it written. Nothing here calls anything: so no access to it needs a check at run time
/// (docs/decisions.md, CPU).
///
/// ```
/// nothing ─1xx→ interims ─kernel takes them→ nothing
///    │             └─head, behind them→ delivery
///    └─head→ delivery ─all of it is with the kernel→ nothing
/// ```
struct ResponseOutput {
    // As 32 bits, for the sake of connections that are idle.
    private var heldFrom: UInt32 = 0
    private var heldTo: UInt32 = 0
    /// Interim responses that the kernel has not taken yet.
    private(set) var interims: ByteBuffer?
    /// What the kernel has not taken yet of the response, once that has begun.
    private(set) var delivery: Delivery?
    /// What was answered without a transaction, for the log.
    private(set) var answered: AnsweredRequest?
    /// When the response's first byte went out (nanoseconds of the loop's clock); 0 before.
    private(set) var firstByteSent: Int64 = 0
    /// Whether the request under way allows another one behind it.
    private(set) var keepsAlive = true

    // MARK: One response

    /// Begins the response to a request that is not answered on the hot path.
    mutating func begin() { firstByteSent = 0 }

    mutating func noteSent(at now: Int64) {
        if firstByteSent == 0 { firstByteSent = now }
    }

    mutating func deliver(_ response: Delivery) { delivery = response }

    /// - Returns: what is to be detached from its body.
    mutating func endDelivery() -> Delivery? { delivery.take() }

    /// Has `request` logged when its answer is out.
    mutating func logWhenOut(_ request: AnsweredRequest) { answered = request }
    mutating func logged() { answered = nil }

    // MARK: Hits that are held back

    /// Where they stand in the buffer of their round; `nil` if none is held back.
    var heldHits: Range<Int>? { heldTo == 0 ? nil : Int(heldFrom)..<Int(heldTo) }

    /// Holds back what stands there: behind what is held back already.
    mutating func hold(from start: Int, to end: Int) {
        if heldTo == 0 { heldFrom = UInt32(start) }
        heldTo = UInt32(end)
    }

    mutating func takeHeldHits() -> Range<Int>? {
        defer { heldTo = 0 }
        return heldHits
    }

    // MARK: Interim responses

    mutating func queue(_ buffer: ByteBuffer) { interims = buffer }
    /// Takes the interim responses that wait: they are out, or go out with what the caller writes.
    mutating func takeInterims() -> ByteBuffer? { interims.take() }

    // MARK: Persistence

    mutating func keepAlive(_ mayPersist: Bool) { keepsAlive = mayPersist }
    /// Lets the connection end after this response.
    mutating func beLast() { keepsAlive = false }
}
