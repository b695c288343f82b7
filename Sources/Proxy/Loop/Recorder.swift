import Bytes
import HTTPSemantics
import Libevent
import Routing
import Telemetry

/// The response that a client was sent to one request, and its times in nanoseconds of the loop's clock.
struct SentResponse {
    /// `nil` if the connection ended before any byte of the response was sent.
    let status: Status?
    /// Whether the response was cut off, or the client left, before its end.
    let isAborted: Bool
    /// When the request's first byte was read; 0: in this iteration of the loop.
    let began: Int64
    /// When the response's first byte was sent; 0: none was.
    let firstByte: Int64
    /// Bytes of content that were sent.
    let bodyBytes: UInt64
    /// Whether the peer is a trusted proxy, which names its client (`TrustedProxies`).
    let isProxied: Bool
}

/// Records each finished request: counters, latencies, and a record for the access log. Formats no text.
///
/// Not an `OperationObserver`: a hit has no operation, and an observer runs on the thread that ends the operation,
/// while counters belong to one loop each.
///
/// Owned by its `LoopContext`, confined to its loop.
final class Recorder {
    /// The `detail` of a request that the end of the program aborted.
    static let shutdown: StaticString = "shutdown"
    /// The `detail` of a request for which there was no memory.
    static let memoryFull: StaticString = "memory-full"
    /// The `detail` of a request whose client held up others (`coalescing.min-shared-rate`).
    static let heldUpOthers: StaticString = "held-up-others"

    let metrics: LoopMetrics
    let latency = LatencyRecorder()
    /// The trusted proxies of the current settings, whose `X-Forwarded-For` names the client.
    var trustedProxies: TrustedProxies
    /// Whether the program is ending and aborts the requests in progress.
    var isCuttingOff = false
    private let loop: EventLoop
    private let feed: AccessLogFeed?
    /// Of the last request that had an identifier made here.
    private let madeIDText = ByteBuffer(capacity: 32)

    /// - Parameter feed: `nil` if there is no access log.
    init(loop: EventLoop, metrics: LoopMetrics, feed: AccessLogFeed?, trustedProxies: TrustedProxies) {
        self.trustedProxies = trustedProxies
        self.loop = loop
        self.metrics = metrics
        self.feed = feed
    }

    /// The loop ends: from now on each record is handed to the access log at once.
    func finish() { feed?.finish() }

    func record(
        _ sent: SentResponse, of request: ClientRequest, _ provenance: Provenance, client: Span<UInt8>,
        security: ClientSecurity?, server: Span<UInt8>, upstreamDuration: UInt64?, madeID: RequestID, resumes: UInt8
    ) {
        let (head, fields) = (request.head, request.fields)
        var record = makeRecord(sent, provenance.verdict)
        record.version = head.version
        record.role = provenance.role
        record.operation = provenance.operation ?? 0
        record.upstreamStatus = provenance.originStatus?.code ?? 0
        record.upstreamDuration = upstreamDuration
        record.resumes = resumes
        count(head.method, record, request.route.upstreamMetrics)
        append(
            record, head, fields.view, client: client, isProxied: sent.isProxied, madeID: madeID, security,
            server: server,
            detail: (provenance.detail ?? "").bytes)
    }

    func record(_ sent: SentResponse, of answered: AnsweredRequest, client: ByteSlice, security: ClientSecurity?) {
        var record = makeRecord(sent, answered.verdict)
        guard let head = answered.head, let fields = answered.fields else {
            // The request was refused before its head could be parsed.
            count(.other, record, metrics.unrouted)
            guard let logged = security?.logged else {
                feed?.append(record, client: client.span, method: Span(), host: Span(), target: Span())
                return
            }
            feed?.append(
                record, client: client.span, method: Span(), host: Span(), target: Span(), upstream: Span(),
                detail: Span(), referer: Span(), userAgent: Span(), requestID: Span(), security: logged.span)
            return
        }
        record.version = head.version
        count(head.method, record, answered.upstreamMetrics ?? metrics.unrouted)
        append(
            record, head, fields.view, client: client.span, isProxied: sent.isProxied, madeID: answered.madeID,
            security, detail: (isCutOff(sent) ? Self.shutdown : "").bytes)
    }

    /// Whether the end of the program has aborted this response.
    func isCutOff(_ sent: SentResponse) -> Bool { sent.isAborted && isCuttingOff }

    /// Records a hit while the request's head is still in the buffer.
    @inline(__always) // Two callers, of which one is rare.
    func recordHit(
        _ sent: SentResponse, of head: RequestHead, _ fields: FieldView, on route: Route, client: ByteSlice,
        security: ClientSecurity?, madeID: RequestID
    ) {
        var record = makeRecord(sent, .hit)
        record.version = head.version
        count(head.method, record, route.upstreamMetrics)
        append(record, head, fields, client: client.span, isProxied: sent.isProxied, madeID: madeID, security)
    }

    /// Counts the outcome of storing a response.
    func count(_ outcome: StoreOutcome) { metrics.add(.stores(outcome)) }

    @inline(__always)
    private func makeRecord(_ sent: SentResponse, _ verdict: Verdict) -> AccessLogRecord {
        let now = loop.now
        let began = sent.began == 0 ? now : sent.began
        var record = AccessLogRecord(
            started: loop.wallClockMilliseconds - (now - began) / 1_000_000, duration: UInt64(max(0, now - began)),
            firstByte: sent.firstByte == 0 ? nil : UInt64(max(0, sent.firstByte - began)))
        record.status = sent.status?.code ?? 0
        record.bodyBytesSent = sent.bodyBytes
        record.verdict = verdict
        record.isAborted = sent.isAborted
        return record
    }

    private func count(_ method: Method, _ record: AccessLogRecord, _ upstreamMetrics: UpstreamMetrics) {
        metrics.add(.requests(method))
        upstreamMetrics.add(.verdicts(record.verdict))
        if record.status != 0 { metrics.add(.responses(StatusClass(status: record.status))) }
        if let firstByte = record.firstByte {
            latency.record(record.verdict, firstByte: firstByte, total: record.duration)
        }
    }

    private func append(
        _ record: AccessLogRecord, _ head: RequestHead, _ fields: FieldView, client: Span<UInt8>, isProxied: Bool,
        madeID: RequestID, _ security: ClientSecurity?, server: Span<UInt8> = Span(), detail: Span<UInt8> = Span()
    ) {
        var client = client
        if isProxied {
            let named = trustedProxies.client(in: fields)
            if !named.isEmpty { client = named }
        }
        if fields.present.contains(.xRequestID) || !madeID.isNone || security != nil {
            return appendMore(record, head, fields, client: client, madeID, security, server: server, detail: detail)
        }
        let bytes = fields.bytes
        // Not through a local constant, which would retain the feed.
        feed?.append(
            record, client: client, method: bytes.extracting(head.methodRange.range),
            host: bytes.extracting(head.authority.range), target: bytes.extracting(head.target.whole.range),
            upstream: server, detail: detail, referer: fields.logged(.referer), userAgent: fields.logged(.userAgent))
    }

    /// With the request's identifier, if it has one: the client's own, if it is valid, else the one that was made. And
    /// with what the handshake has agreed on, if there was one.
    @inline(never) // Kept out of the code of requests without both.
    private func appendMore(
        _ record: AccessLogRecord, _ head: RequestHead, _ fields: FieldView, client: Span<UInt8>, _ madeID: RequestID,
        _ security: ClientSecurity?, server: Span<UInt8>, detail: Span<UInt8>
    ) {
        let made = madeIDText
        made.removeAll()
        if !madeID.isNone { made.append(madeID) }
        var id = made.span
        if let own = fields.requestID { id = own }
        let bytes = fields.bytes
        let logged = security?.logged ?? .empty
        feed?.append(
            record, client: client, method: bytes.extracting(head.methodRange.range),
            host: bytes.extracting(head.authority.range), target: bytes.extracting(head.target.whole.range),
            upstream: server, detail: detail, referer: fields.logged(.referer), userAgent: fields.logged(.userAgent),
            requestID: id, security: logged.span)
    }
}

extension FieldView {
    /// The value of the first line of `field`; empty if there is none.
    @_lifetime(copy self)
    fileprivate func logged(_ field: KnownField) -> Span<UInt8> {
        guard let value = firstValue(of: field) else { return Span() }
        return value
    }
}
