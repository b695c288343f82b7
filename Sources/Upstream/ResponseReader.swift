import Bytes
import HTTPSemantics

/// Reads the responses to one request from a connection's bytes: interim responses, the final head, and its body.
///
/// ```
/// ended ─begin→ head
/// head ─1xx→ taking ─next→ head
///  ├─final→ taking ─next→ body ─end→ ended
///  └─101→ taking
/// ```
struct ResponseReader: ~Copyable {
    enum Event {
        case needMore
        /// An interim response's head of so many bytes; continue after it.
        case interim(length: Int)
        /// A 101 head of so many bytes: the bytes behind it are not HTTP.
        case switched(length: Int)
        /// The final head of so many bytes; continue after it.
        case head(length: Int)
        /// Content at `range` of the input, of which `consumed` bytes are consumed. `isLast`: the response has ended,
        /// without trailers; another call of `next` would return `end`.
        case body(Range<Int>, consumed: Int, isLast: Bool)
        case end(trailers: ByteSlice?, consumed: Int)
    }

    enum Ending { case complete, truncated, beforeHead }

    private enum Phase { case head, taking, body, ended }

    private var method = Method.get
    private var phase = Phase.ended
    private var parser: ResponseHeadParser
    private var decoder = BodyDecoder()
    private var seenInterim = 0

    /// A server that sends more interim responses than this for one request is not making progress.
    static let maxInterimResponses = 64

    init(maxHeadSize: Int) {
        var limits = HeadLimits.response
        limits.maxHeadBytes = maxHeadSize
        parser = ResponseHeadParser(limits: limits)
    }

    /// Prepares for the responses to the next request; memory is kept.
    mutating func begin(answering method: Method) {
        self.method = method
        phase = .head
        seenInterim = 0
        parser.reset(answering: method)
    }

    /// Whether the connection may carry another request once this response has ended.
    var keepsAlive: Bool { phase == .ended && parser.head.keepsAlive }

    /// The status of the head. Valid after `interim`, `switched` or `head` until the next call of `next`.
    var status: Status { parser.head.status }

    /// Valid like `status`: whether the response only says that the server has waited long enough for a request, and
    /// closes.
    var isServerTimeout: Bool { parser.head.status == .requestTimeout && !parser.head.keepsAlive && seenInterim == 0 }

    /// Valid like `status`: whether the head may contain terms for its connection.
    var mayHaveTerms: Bool {
        parser.present.contains(.keepAlive) || parser.head.status.code == 401 || parser.head.status.code == 407
    }

    /// Valid like `status`: the terms in the head, which stands in `bytes`: for how long the server keeps the
    /// connection (`FieldView.keepAliveSeconds`), and whether it asks for credentials that authenticate the connection.
    @inline(never)
    func terms(in bytes: Span<UInt8>) -> (keepAliveSeconds: UInt32?, challengesConnection: Bool) {
        let fields = parser.view(in: bytes)
        return (fields.keepAliveSeconds, fields.challengesConnection(parser.head.status))
    }

    /// Valid like `status`: the head, which stands in `bytes`.
    @_lifetime(copy bytes, borrow self)
    func head(in bytes: Span<UInt8>) -> ReceivedHead {
        let fields = parser.view(in: bytes)
        let start = parser.head.length
        let length =
            parser.head.status == .switchingProtocols ? bytes.count - start : parser.head.framing.announcedLength
        guard let length, length <= bytes.count - start else {
            return ReceivedHead(parser.head, fields: fields, content: nil)
        }
        return ReceivedHead(parser.head, fields: fields, content: bytes.extracting(start..<start + length))
    }

    /// - Parameter bytes: the bytes that are not consumed yet.
    mutating func next(in bytes: Span<UInt8>) throws(MessageSyntaxError) -> Event {
        if phase == .taking { leaveHead() }
        switch phase {
        case .head:
            guard case .complete(let length) = try parser.parse(bytes) else { return .needMore }
            phase = .taking
            let status = parser.head.status
            if status == .switchingProtocols { return .switched(length: length) }
            guard status.isInformational else { return .head(length: length) }
            seenInterim += 1
            return .interim(length: length)
        case .taking:
            return .needMore
        case .body:
            let step = try decoder.decode(bytes)
            switch step.action {
            case .data(let range):
                let isLast = decoder.isComplete
                if isLast { phase = .ended }
                return .body(range, consumed: step.consumed, isLast: isLast)
            case .needMore:
                return step.consumed > 0 ? .body(0..<0, consumed: step.consumed, isLast: false) : .needMore
            case .end:
                phase = .ended
                let trailers = decoder.trailers(in: bytes)
                guard trailers.lines.count > 0 else { return .end(trailers: nil, consumed: step.consumed) }
                let lines = ByteBuffer(capacity: 256)
                lines.appendTrailers(trailers, connection: parser.head.connection)
                return .end(trailers: lines.isEmpty ? nil : lines.copied(), consumed: step.consumed)
            }
        case .ended:
            return .end(trailers: nil, consumed: 0)
        }
    }

    /// Called when the head was handled and its bytes were consumed.
    private mutating func leaveHead() {
        if parser.head.status.isInformational {
            parser.reset(answering: method)
            phase = .head
        } else {
            decoder.reset(parser.head.framing)
            phase = .body
        }
    }

    /// Whether the whole final response was read, trailers included.
    var hasEnded: Bool { phase == .ended }

    /// Whether there were more interim responses than `maxInterimResponses`.
    var hasTooManyInterim: Bool { seenInterim > Self.maxInterimResponses }

    /// Called when the connection has ended and every byte before the end went through `next`.
    mutating func endOfStream() -> Ending {
        switch phase {
        case .head, .taking: return .beforeHead
        case .body:
            guard decoder.endOfStream() == .complete else { return .truncated }
            phase = .ended
            return .complete
        case .ended: return .complete
        }
    }
}
