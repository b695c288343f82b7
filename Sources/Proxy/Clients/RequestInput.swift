import Bytes

/// The receiving side of one client connection: its buffer, and how far requests have been parsed from it.
///
/// Stored inline in its `ClientConnection`, which reads, parses and answers. Only the methods of this struct write its
/// fields. They call no other code, so accesses need no exclusivity check at run time (docs/decisions.md, CPU).
///
/// ```
/// between requests ─begins→ head ─headTaken→ (content ─contentEnded→) answering ─answered→ between requests
/// ```
struct RequestInput {
    /// Lent by the worker while there are bytes to read, or read bytes that are not yet used.
    private(set) var context: ReadContext?
    /// The reader of the current request's content, until the content is complete.
    private(set) var content: ContentReader?
    /// How many requests have been taken from the buffer.
    private(set) var requestCount = 0
    /// When the first byte of the current request was read (nanoseconds of the loop's clock); 0 before, and if it was
    /// read in this iteration together with an earlier request.
    private(set) var requestBegan: Int64 = 0
    /// Whether the client has shut its sending side.
    private(set) var hasEnded = false
    /// Whether `serve` is taking requests from the buffer, which must not be returned meanwhile.
    private(set) var isBeingTaken = false

    // MARK: The buffer

    mutating func borrow(_ context: ReadContext) { self.context = context }

    /// The context to return to the worker; `nil` if it is still in use or none was lent.
    mutating func giveUpContext() -> ReadContext? {
        guard !isBeingTaken else { return nil }
        return context.take()
    }

    /// Whether the buffer holds no bytes.
    var isEmpty: Bool { context?.buffer.isEmpty ?? true }

    /// Whether the buffer holds a part of a request. Empty lines before a request do not count (RFC 9112 §2.2).
    var hasBegunHead: Bool {
        guard let buffer = context?.buffer else { return false }
        let bytes = buffer.span
        for index in bytes.indices where bytes[index] != 0x0d && bytes[index] != 0x0a { return true }
        return false
    }

    // MARK: One request

    mutating func begins(at now: Int64) {
        if requestBegan == 0 { requestBegan = now }
    }

    mutating func beginTaking() { isBeingTaken = true }
    mutating func endTaking() { isBeingTaken = false }
    mutating func headTaken() { requestCount += 1 }
    mutating func awaitContent(_ reader: ContentReader) { content = reader }
    /// The content is complete, or the rest of it is not needed.
    mutating func contentEnded() { content = nil }
    mutating func answered() { requestBegan = 0 }

    mutating func ended() { hasEnded = true }
}
