import Bytes

/// What one client sends: the buffer that it is read into, and how far its requests are taken out of it.
///
/// Held inline by its `ClientConnection`, which reads, parses and answers. Only here is it written. Nothing here calls
/// anything: so no access to it needs a check at run time (docs/decisions.md, CPU).
///
/// ```
/// between requests ─begins→ head ─headTaken→ (content ─contentEnded→) answering ─answered→ between requests
/// ```
struct RequestInput {
    /// Lent while there is something to read, or what was read is not all used.
    private(set) var context: ReadContext?
    /// The content of the request under way, until all of it is in.
    private(set) var content: ContentReader?
    /// How many requests were taken out.
    private(set) var requestCount = 0
    /// When the first byte of the current request was seen (nanoseconds of the loop's clock); 0 before, and where that
    /// was in this iteration.
    private(set) var requestBegan: Int64 = 0
    /// Whether the client has closed its half.
    private(set) var hasEnded = false
    /// Whether requests are being taken out: the buffer stays meanwhile.
    private(set) var isBeingTaken = false

    // MARK: The buffer

    mutating func borrow(_ context: ReadContext) { self.context = context }

    /// What is to be given back now; `nil` if it is still in use, or none was lent.
    mutating func giveUpContext() -> ReadContext? {
        guard !isBeingTaken else { return nil }
        return context.take()
    }

    /// What is in the buffer.
    var isEmpty: Bool { context?.buffer.isEmpty ?? true }

    /// Whether a part of a request is here. Empty lines before it do not count (RFC 9112 §2.2).
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
    /// All of it is in, or nobody wants the rest.
    mutating func contentEnded() { content = nil }
    mutating func answered() { requestBegan = 0 }

    mutating func ended() { hasEnded = true }
}
