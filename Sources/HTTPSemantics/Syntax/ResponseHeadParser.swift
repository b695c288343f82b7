/// The control data and framing of a response, computed once when its head is complete.
public struct ResponseHead: Sendable {
    /// The status code as it was received.
    public internal(set) var status = Status(0)
    /// The reason phrase after the code, perhaps empty.
    public internal(set) var reason = ByteRange(0..<0)
    public internal(set) var version = HTTPVersion.http11
    public internal(set) var framing = MessageFraming.none
    /// The value of `Content-Length`, also in a response without a body: to HEAD, or 304.
    public internal(set) var contentLength: UInt64?
    public internal(set) var connection = ConnectionOptions()
    /// Whether the connection may carry another request after this response's body.
    public internal(set) var keepsAlive = false
    /// Bytes of the head.
    public internal(set) var length = 0
}

/// Parses response heads, strictly and a line at a time (RFC 9112 §2, §4, §5). Does not allocate once its memory has
/// grown.
///
///     startLine ─status line→ fields ─empty line→ complete
///
/// One per connection, on its loop; `reset` before each response, including interim responses.
public struct ResponseHeadParser: ~Copyable, Sendable {
    private enum Phase { case startLine, fields, complete }

    private var phase = Phase.startLine
    private var section: FieldSectionParser
    private var method: Method
    private let limits: HeadLimits
    /// Valid once `parse` returned `complete`.
    public private(set) var head = ResponseHead()

    /// `method` is the request's; the framing depends on it.
    public init(limits: HeadLimits = .response, answering method: Method = .get) {
        self.limits = limits
        self.method = method
        section = FieldSectionParser(maxLines: limits.maxFieldLines, reserving: HeadLimits.usualFieldLines)
    }

    /// Prepares for the next head; memory is kept.
    public mutating func reset(answering method: Method) {
        self.method = method
        phase = .startLine
        section.reset()
    }

    /// The known fields that occur at least once among the lines read so far.
    public var present: FieldSet { section.present }

    /// The fields read so far. `bytes` must be the bytes last given to `parse`.
    @_lifetime(copy bytes, borrow self)
    public func view(in bytes: Span<UInt8>) -> FieldView {
        FieldView(bytes: bytes, lines: section.lines, present: section.present)
    }

    /// Continues reading. `bytes` start with the head's first byte; each call gives the same bytes and perhaps more.
    /// - Throws: the first error in the head, with its position. Only `reset` may be called then.
    public mutating func parse(_ bytes: Span<UInt8>) throws(MessageSyntaxError) -> HeadProgress {
        while true {
            switch phase {
            case .startLine:
                if !bytes.isEmpty, bytes[0] != UInt8(ascii: "H") {
                    throw MessageSyntaxError(.malformedStatusLine, at: 0)
                }
                guard let line = try section.nextLine(in: bytes, limit: limits.maxHeadBytes, excess: .headTooLarge)
                else { return .incomplete }
                try parseStatusLine(line, bytes)
                phase = .fields
            case .fields:
                while section.addWholeLine(in: bytes, limit: limits.maxHeadBytes) {}
                guard let line = try section.nextLine(in: bytes, limit: limits.maxHeadBytes, excess: .headTooLarge)
                else { return .incomplete }
                if line.isEmpty {
                    try finish(bytes)
                    phase = .complete
                } else {
                    try section.addLine(line, in: bytes)
                }
            case .complete:
                return .complete(headLength: head.length)
            }
        }
    }

    /// `HTTP-version SP status-code SP [ reason-phrase ]` (RFC 9112 §4). The second space may be missing if the phrase
    /// is, as many servers send it: such a line is not ambiguous.
    private mutating func parseStatusLine(_ line: Range<Int>, _ bytes: Span<UInt8>) throws(MessageSyntaxError) {
        let start = line.lowerBound
        guard line.count >= 12 else { throw MessageSyntaxError(.malformedStatusLine, at: start) }
        head.version = try HTTPVersion(bytes, at: start)
        guard bytes[start + 8] == 0x20, let code = bytes.extracting((start + 9)..<(start + 12)).decimalValue,
            code >= 100
        else { throw MessageSyntaxError(.malformedStatusLine, at: start + 8) }
        head.status = Status(UInt16(code))
        let reason = min(start + 13, line.upperBound)..<line.upperBound
        guard line.count == 12 || bytes[start + 12] == 0x20, !bytes.extracting(reason).holdsForbiddenInValue
        else { throw MessageSyntaxError(.malformedStatusLine, at: start + 12) }
        head.reason = ByteRange(reason)
    }

    /// Computes the parts of `head` that depend on the whole head.
    private mutating func finish(_ bytes: Span<UInt8>) throws(MessageSyntaxError) {
        head.connection = try ConnectionOptions(view(in: bytes))
        head.keepsAlive = head.connection.persists(head.version)
        head.contentLength = nil
        head.length = section.lineStart
        // RFC 9112 §6.3, 2: a tunnel; Content-Length and Transfer-Encoding MUST be ignored.
        if method == .connect, head.status.isSuccessful {
            head.framing = .none
        } else {
            let declared = try DeclaredFraming(view(in: bytes), head.version, allowingEqualLengths: true)
            head.contentLength = declared.length
            // RFC 9112 §6.3, 1.
            if method == .head || head.status.forbidsContent {
                head.framing = .none
                // An origin that announces a body although 204 has none (RFC 9112 §6.1, RFC 9110 §8.6) may send the
                // body as well.
                if head.status == .noContent, declared.isChunked || declared.length ?? 0 > 0 { head.keepsAlive = false }
            } else if declared.isChunked {
                head.framing = .chunked
            } else if let length = declared.length {
                head.framing = .length(length)
            } else {
                // RFC 9112 §6.3, 8.
                head.framing = .untilClose
                head.keepsAlive = false
            }
        }
    }
}
