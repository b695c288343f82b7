import Bytes
import HTTPSemantics
import Testing

/// RFC 9211, RFC 9209, RFC 8586, RFC 9110 §7.6.3 and §15.2: what a proxy says of itself, and what it passes on.
struct StatusFieldTests {
    static let writer = CacheStatusWriter(name: ByteSlice("coalesced"))

    static func status(_ handling: CacheStatus.Handling, _ change: (inout CacheStatus) -> Void = { _ in })
        -> CacheStatus
    {
        var status = CacheStatus(handling)
        change(&status)
        return status
    }

    static let statuses: [(CacheStatus, String)] = [
        (status(.hit), "hit"),
        (status(.hit) { $0.timeToLive = 376 }, "hit; ttl=376"),
        (status(.hit) { $0.timeToLive = -412 }, "hit; ttl=-412"),
        (
            status(.hit) {
                $0.stored = true; $0.collapsed = true; $0.forwardStatus = .ok
            }, "hit"
        ),
        (status(.forwarded(.uriMiss)), "fwd=uri-miss"), (status(.forwarded(.varyMiss)), "fwd=vary-miss"),
        (status(.forwarded(.request)), "fwd=request"),
        (status(.forwarded(.method)), "fwd=method"), (status(.forwarded(.bypass)), "fwd=bypass"),
        (status(.forwarded(.partial)), "fwd=partial"),
        (status(.forwarded(.stale)) { $0.forwardStatus = .notModified }, "fwd=stale; fwd-status=304"),
        (status(.forwarded(.uriMiss)) { $0.stored = true }, "fwd=uri-miss; stored"),
        (status(.forwarded(.uriMiss)) { $0.collapsed = true }, "fwd=uri-miss; collapsed"),
        (
            status(.forwarded(.uriMiss)) {
                $0.forwardStatus = .ok; $0.stored = true; $0.collapsed = true; $0.timeToLive = 60
            },
            "fwd=uri-miss; fwd-status=200; stored; collapsed; ttl=60"
        ),
    ]

    @Test(arguments: statuses)
    func `Cache-Status says how the request was handled`(status: CacheStatus, expected: String) {
        #expect(written { Self.writer.write(status, to: $0) } == "Cache-Status: coalesced; \(expected)\r\n")
    }

    @Test func `a hit's line is the same from the short writer`() {
        let start = written { Self.writer.writeHitStart(to: $0) }
        #expect(start + "60\r\n" == written { Self.writer.write(Self.status(.hit) { $0.timeToLive = 60 }, to: $0) })
    }

    @Test func `detail is a token`() {
        let line = written { Self.writer.write(CacheStatus(.hit), detail: "memory", to: $0) }
        #expect(line == "Cache-Status: coalesced; hit; detail=memory\r\n")
    }

    static let names: [(String, String)] = [
        ("coalesced", "coalesced"), ("cache-1.example.net", "cache-1.example.net"), ("a:8080", "a:8080"),
        ("1cache", "\"1cache\""), ("a cache", "\"a cache\""), ("a\"b\\c\u{e9}", "\"a\\\"b\\\\c??\""), ("", "\"\""),
        ("[::1]", "\"[::1]\""),
    ]

    @Test(arguments: names)
    func `a name is written as a token if possible`(name: String, expected: String) {
        // RFC 9211 §2, RFC 9209 §2, RFC 9651 §3.3.4
        let cache = CacheStatusWriter(name: ByteSlice(name)), proxy = ProxyStatusWriter(name: ByteSlice(name))
        #expect(written { cache.write(CacheStatus(.hit), to: $0) } == "Cache-Status: \(expected); hit\r\n")
        #expect(written { proxy.write(.dnsError, to: $0) } == "Proxy-Status: \(expected); error=dns_error\r\n")
    }

    static let reasons: [(ValidationReason, ForwardReason)] = [
        (.stale, .stale), (.noCache, .stale), (.invalidated, .stale), (.requestNoCache, .request),
        (.requestAge, .request),
    ]

    @Test(arguments: reasons)
    func `the fwd parameter gives the reason why a stored response was not used`(
        reason: ValidationReason, expected: ForwardReason
    ) {
        #expect(ForwardReason(reason) == expected)
    }

    @Test func `Proxy-Status names the error`() {
        let writer = ProxyStatusWriter(name: ByteSlice("coalesced"))
        let line = written { writer.write(.httpProtocolError, to: $0) }
        #expect(line == "Proxy-Status: coalesced; error=http_protocol_error\r\n")
        let more = written { writer.write(.httpProtocolError, details: "A \"line\" \\ ends.", to: $0) }
        #expect(more == #"Proxy-Status: coalesced; error=http_protocol_error; details="A \"line\" \\ ends.""# + "\r\n")
    }

    static let errors: [(ProxyError, String, UInt16)] = [
        (.dnsTimeout, "dns_timeout", 504), (.dnsError, "dns_error", 502),
        (.destinationUnavailable, "destination_unavailable", 503),
        (.connectionRefused, "connection_refused", 502), (.connectionTerminated, "connection_terminated", 502),
        (.connectionTimeout, "connection_timeout", 504), (.connectionReadTimeout, "connection_read_timeout", 504),
        (.connectionLimitReached, "connection_limit_reached", 503), (.httpRequestDenied, "http_request_denied", 403),
        (.httpResponseIncomplete, "http_response_incomplete", 502),
        (.httpResponseTimeout, "http_response_timeout", 504),
        (.httpProtocolError, "http_protocol_error", 502), (.proxyInternalError, "proxy_internal_error", 500),
        (.proxyConfigurationError, "proxy_configuration_error", 500), (.proxyLoopDetected, "proxy_loop_detected", 502),
    ]

    @Test(arguments: errors)
    func `each proxy error has its name and its status`(error: ProxyError, token: String, status: UInt16) {
        // RFC 9209 §2.3
        #expect("\(error.token)" == token)
        #expect(error.recommendedStatus.code == status)
    }

    static let loops: [Row<Int>] = [
        Row("RFC 8586 §2 none", "", 0),
        Row("RFC 8586 §2 others", "CDN-Loop: foo, bar", 0),
        Row("RFC 8586 §2 us", "CDN-Loop: foo, coalesced", 1),
        Row("RFC 8586 §2 in any case", "CDN-Loop: Coalesced", 1),
        Row("RFC 8586 §2 with parameters", "CDN-Loop: coalesced; a=b", 1),
        Row("RFC 8586 §2 twice", "CDN-Loop: coalesced, foo\nCDN-Loop: coalesced", 2),
        Row("RFC 8586 §2 not as a parameter", "CDN-Loop: foo; a=\"x, coalesced, y\"", 0),
        Row("RFC 8586 §2 not as a part", "CDN-Loop: coalesced2, xcoalesced", 0),
        Row("RFC 9110 §7.6.3 Via, others", "Via: 1.1 foo, 1.0 bar", 0),
        Row("RFC 9110 §7.6.3 Via, us", "Via: 1.1 foo, 1.1 coalesced", 1),
        Row("RFC 9110 §7.6.3 Via, with a comment", "Via: 1.1 coalesced (a b)", 1),
        Row("RFC 9110 §7.6.3 Via, with a protocol", "Via: HTTP/1.1 coalesced", 1),
        Row("RFC 9110 §7.6.3 Via, not in a comment", "Via: 1.1 foo (coalesced)", 0),
        Row("both count once", "CDN-Loop: coalesced\nVia: 1.1 coalesced", 1),
    ]

    @Test(arguments: loops)
    func `a request that passed this proxy before is recognised`(row: Row<Int>) {
        let block = head(row.fields)
        let visits = LoopDetection(name: ByteSlice("coalesced")).visits(block.view)
        #expect(visits == row.expected)
    }

    @Test func `a forwarded request is marked`() {
        let loop = LoopDetection(name: ByteSlice("coalesced"))
        #expect(written { loop.writeLoop(to: $0) } == "CDN-Loop: coalesced\r\n")
        #expect(written { loop.writeVia(received: .http10, to: $0) } == "Via: 1.0 coalesced\r\n")
    }
}
