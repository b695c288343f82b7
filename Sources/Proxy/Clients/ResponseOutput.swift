import Bytes

/// The sending side of one client connection: the response to the current request, and whether the connection persists.
///
/// Stored inline in its `ClientConnection`, which writes to the socket. Plain hits that the kernel takes whole
/// (`HitPath`) leave no trace here. Only the methods of this struct write its fields. They call no other
/// code, so accesses need no exclusivity check at run time (docs/decisions.md, CPU).
///
/// ```
/// empty ───1xx→ interims ─kernel takes them→ empty
///    │             └─head, behind them→ delivery
///    └─head→ delivery ─kernel has taken all of it→ empty
/// ```
struct ResponseOutput {
    /// Interim responses that the kernel has not taken yet.
    private(set) var interims: ByteBuffer?
    /// The part of the current response that the kernel has not taken yet, once that response has begun.
    private(set) var delivery: Delivery?
    /// The request answered without a transaction, for the access log.
    private(set) var answered: AnsweredRequest?
    /// When the response's first byte was sent (nanoseconds of the loop's clock); 0 before.
    private(set) var firstByteSent: Int64 = 0
    /// Whether the connection persists after the current request.
    private(set) var keepsAlive = true

    // MARK: One response

    /// Begins the response to a request that is not answered on the hot path.
    mutating func begin() { firstByteSent = 0 }

    mutating func noteSent(at now: Int64) {
        if firstByteSent == 0 { firstByteSent = now }
    }

    mutating func deliver(_ response: Delivery) { delivery = response }

    /// - Returns: the delivery, which the caller must detach from its body.
    mutating func endDelivery() -> Delivery? { delivery.take() }

    /// Makes the connection log `request` once its response is sent.
    mutating func logWhenOut(_ request: AnsweredRequest) { answered = request }
    mutating func logged() { answered = nil }

    // MARK: Interim responses

    mutating func queue(_ buffer: ByteBuffer) { interims = buffer }
    /// Takes the pending interim responses: they are sent, or the caller writes them in front of the final response.
    mutating func takeInterims() -> ByteBuffer? { interims.take() }

    // MARK: Persistence

    mutating func keepAlive(_ mayPersist: Bool) { keepsAlive = mayPersist }
    /// Closes the connection after this response.
    mutating func beLast() { keepsAlive = false }
}
