import Bytes
import HTTPSemantics

/// Reads the responses to one request out of a connection's bytes: interim ones, the final head, its body.
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
        /// A 1xx head of so many bytes; go on after it.
        case interim(length: Int)
        /// A 101 head of so many bytes: what follows is not HTTP.
        case switched(length: Int)
        /// The final head of so many bytes; go on after it.
        case head(length: Int)
        /// Content at `range` of the input, of which `consumed` bytes are done with. `isLast`: the response has ended,
        /// without trailers; another `next` would say `end`.
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

    /// Ready for the responses to the next request; memory is kept.
    mutating func begin(answering method: Method) {
        self.method = method
        phase = .head
        seenInterim = 0
        parser.reset(answering: method)
    }

    /// Whether the connection may carry another request once this response has ended.
    var keepsAlive: Bool { phase == .ended && parser.head.keepsAlive }

    /// Between `interim`, `switched` or `head` and `next`.
    var status: Status { parser.head.status }

    /// Likewise: whether all that the server says is that it has waited for a request long enough, and closes.
    var saysTimeIsUp: Bool { parser.head.status == .requestTimeout && !parser.head.keepsAlive && seenInterim == 0 }

    /// Likewise: whether the head may say something of the connection that it came on.
    var mayHaveTerms: Bool {
        parser.present.contains(.keepAlive) || parser.head.status.code == 401 || parser.head.status.code == 407
    }

    /// Likewise: for how long the server keeps the connection (`FieldView.keepAliveSeconds`), and whether it asks for
    /// credentials that hold for the connection, by the head, which stands in `bytes`.
    @inline(never)
    func terms(in bytes: Span<UInt8>) -> (keepAliveSeconds: UInt32?, challengesConnection: Bool) {
        let fields = parser.view(in: bytes)
        return (fields.keepAliveSeconds, fields.challengesConnection(parser.head.status))
    }

    /// Likewise: the head as it stands in `bytes`.
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

    /// - Parameter bytes: what is not yet consumed.
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

    /// The head was dealt with and its bytes consumed.
    private mutating func leaveHead() {
        if parser.head.status.isInformational {
            parser.reset(answering: method)
            phase = .head
        } else {
            decoder.reset(parser.head.framing)
            phase = .body
        }
    }

    /// Whether all of the final response was taken, trailers and all.
    var hasEnded: Bool { phase == .ended }

    /// Whether there were more interim responses than can be meant.
    var hasTooManyInterim: Bool { seenInterim > Self.maxInterimResponses }

    /// The connection ended, and every byte before that went through `next`.
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
