import Bytes
import HTTPSemantics
import Testing

/// The head that an origin gets for `request`.
private func forward(
    _ request: String, _ changes: consuming RequestForwarding.Changes? = nil,
    _ clientFields: RequestForwarding.ClientFields = .off, via: Bool = false, from client: String = "192.0.2.7",
    oddNames: Bool = false, trustsProxies: Bool = false, extra: @escaping (ByteBuffer) -> Void = { _ in }
) throws -> String {
    let message = wire(request)
    var parser = RequestHeadParser(limits: .roomy)
    guard case .complete = try parser.parse(message.span) else { return "incomplete" }
    let forwarding = RequestForwarding(
        via: via ? ByteSlice("us") : nil, clientFields: clientFields, forwardsOddNames: oddNames,
        trustsProxies: trustsProxies, defaultHost: ByteSlice("origin:9000")
    )
    let buffer = ByteBuffer(capacity: 64)
    let address = ByteSlice(client)
    let host = ByteBuffer(capacity: 64)
    host.appendKeyHost(message.span.extracting(parser.head.authority.range), parser.head.host, defaultPort: 80)
    forwarding.write(
        parser.head, parser.view(in: message.span),
        changes ?? .init(framing: parser.head.framing, keyed: KeyedForwarding([])),
        host: host.span, clientAddress: address.span, scheme: "http", to: buffer
    )
    extra(buffer)
    buffer.appendLineEnd()
    return plain(buffer.span).replacing("\r\n", with: "|")
}

@Suite struct RequestForwardingTests {
    @Test func `with trusted proxies, the origin gets the key's scheme and no other`() throws {
        let request = "GET / HTTP/1.1|Host: h|X-Forwarded-Proto: https|X-Forwarded-Host: o|X-Forwarded-Proto: x||"
        let bare = "GET / HTTP/1.1|Host: h||"
        func sent(_ request: String, keyed: [String] = [], trustsProxies: Bool = true) throws -> String {
            let keyed = KeyedForwarding(keyed.map { ByteSlice($0) })
            return try forward(
                request.replacing("|", with: "\r\n"), .init(framing: .none, keyed: keyed), trustsProxies: trustsProxies)
        }
        let changed = try sent(request), without = try sent(bare)
        #expect(changed == "GET / HTTP/1.1|Host: h|X-Forwarded-Host: o|X-Forwarded-Proto: http||" && without == bare)
        let believingNobody = try sent(request, trustsProxies: false),
            inKey = try sent(request, keyed: ["x-forwarded-proto"])
        #expect(believingNobody == request && inKey == request)
    }

    @Test(arguments: [
        // Hop-by-hop (RFC 9110 §7.6.1)
        ("GET /a?b HTTP/1.1|Host: h|A: 1|b:2||", "GET /a?b HTTP/1.1|Host: h|A: 1|b:2||"),
        ("GET / HTTP/1.1|A: 1|Host: h|Connection: x, y|X: 1|Z: 2|y: 3|X: 4||", "GET / HTTP/1.1|Host: h|A: 1|Z: 2||"),
        ("GET / HTTP/1.1|Host: h|Connection: close|Keep-Alive: 1|Proxy-Connection: k||", "GET / HTTP/1.1|Host: h||"),
        ("GET / HTTP/1.1|Host: h|TE: trailers|Connection: TE||", "GET / HTTP/1.1|Host: h||"),
        ("GET / HTTP/1.1|Host: h|Upgrade: w|Connection: upgrade||", "GET / HTTP/1.1|Host: h||"),
        ("GET / HTTP/1.1|Host: h|HTTP2-Settings: AAMAAABk||", "GET / HTTP/1.1|Host: h||"),
        ("GET / HTTP/1.1|Host: h|Connection: Host, Cookie|Cookie: c||", "GET / HTTP/1.1|Host: h||"),
        ("GET / HTTP/1.1|Host: h|Connection: x||", "GET / HTTP/1.1|Host: h||"),
        (
            "GET / HTTP/1.1|Host: h|Connection: Content-Length|Content-Length: 5||",
            "GET / HTTP/1.1|Host: h|Content-Length: 5||"
        ),
        // Framing
        ("POST / HTTP/1.1|Content-Length: 05|Host: h||", "POST / HTTP/1.1|Host: h|Content-Length: 5||"),
        (
            "POST / HTTP/1.1|Host: h|Transfer-Encoding: Chunked||",
            "POST / HTTP/1.1|Host: h|Transfer-Encoding: chunked||"
        ),
        // Target and Host (RFC 9112 §3.2)
        ("GET http://b:81/c?d HTTP/1.1|Host: a||", "GET /c?d HTTP/1.1|Host: b:81||"),
        ("GET http://b HTTP/1.1|Host: a||", "GET / HTTP/1.1|Host: b||"),
        ("GET http://b?c HTTP/1.1|Host: a||", "GET /?c HTTP/1.1|Host: b||"),
        ("OPTIONS http://b HTTP/1.1|Host: a||", "OPTIONS * HTTP/1.1|Host: b||"),
        ("OPTIONS * HTTP/1.1|Host: a||", "OPTIONS * HTTP/1.1|Host: a||"),
        ("GET / HTTP/1.1|Host: Shop.TEST:080||", "GET / HTTP/1.1|Host: shop.test||"),
        ("GET http://B:/ HTTP/1.1|Host: a||", "GET / HTTP/1.1|Host: b||"),
        ("GET / HTTP/1.1|Host: [::A]:0081||", "GET / HTTP/1.1|Host: [::a]:81||"),
        ("GET / HTTP/1.0||", "GET / HTTP/1.1|Host: origin:9000||"),
        ("BREW /t HTTP/1.1|Host: a||", "BREW /t HTTP/1.1|Host: a||"),
    ]) func `a request is forwarded without fields for the proxy alone`(request: String, expected: String) throws {
        let result = try forward(request.replacing("|", with: "\r\n"))
        #expect(result == expected)
    }

    @Test(
        arguments: [
            ("Max-Forwards: 0", 0), ("Max-Forwards: 010", 10), ("Max-Forwards: 2147483647", 2_147_483_647),
            ("Max-Forwards: 99999999999999999999999", 2_147_483_647), ("A: 1", nil), ("Max-Forwards:", nil),
            ("Max-Forwards: -1", nil),
            ("Max-Forwards: 1x", nil), ("Max-Forwards: 1\nMax-Forwards: 1", nil),
        ] as [(String, Int?)]) func `Max-Forwards is a single number up to the largest integer`(
            fields: String, expected: Int?
        )
    {
        let block = head(fields)
        let count = block.view.maxForwards
        #expect(count == expected)
    }

    @Test func `the client's address is appended to earlier ones`() throws {
        let request =
            "GET / HTTP/1.0\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 2.2.2.2\r\nVia: 1.1 a\r\n\r\n"
        let appended = try forward(request, nil, .append, via: true)
        #expect(
            appended
                == "GET / HTTP/1.1|Host: h|X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7|X-Forwarded-Proto: http|X-Forwarded-Host: h|Via: 1.1 a, 1.0 us||"
        )
        let nominated = try forward(
            "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1\r\nConnection: x-forwarded-for\r\n\r\n", nil, .append
        )
        #expect(
            nominated
                == "GET / HTTP/1.1|Host: h|X-Forwarded-For: 192.0.2.7|X-Forwarded-Proto: http|X-Forwarded-Host: h||")
    }

    @Test func `a client without an address adds none, and earlier addresses are forwarded unchanged`() throws {
        let ours = "X-Forwarded-Proto: http|X-Forwarded-Host: h||"
        let some = try forward(
            "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1\r\nA: b\r\nX-forwarded-for: 2.2.2.2\r\n\r\n", nil,
            .append, from: "")
        #expect(some == "GET / HTTP/1.1|Host: h|X-Forwarded-For: 1.1.1.1|A: b|X-forwarded-for: 2.2.2.2|" + ours)
        let none = try forward("GET / HTTP/1.1\r\nHost: h\r\n\r\n", nil, .append, from: "")
        #expect(none == "GET / HTTP/1.1|Host: h|" + ours)
        let nominated = try forward(
            "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1\r\nConnection: x-forwarded-for\r\n\r\n", nil,
            .append, from: "")
        #expect(nominated == "GET / HTTP/1.1|Host: h|" + ours)
    }

    @Test func `a client's fields about scheme and host are forwarded if they are part of the key`() throws {
        let request =
            "GET / HTTP/1.1\r\nHost: h\r\nForwarded: host=x\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: x\r\nA: b\r\n\r\n"
        func forwarded(_ keyed: [String], _ request: String) throws -> String {
            try forward(request, .init(framing: .none, keyed: KeyedForwarding(keyed.map { ByteSlice($0) })), .append)
        }
        let ours = "X-Forwarded-For: 192.0.2.7|"
        let without = request.replacing("X-Forwarded-Proto: https\r\n", with: "")
        let nominated = request.replacing("A: b", with: "Connection: x-forwarded-proto")
        let cases: [([String], String, String)] = [
            ([], request, "A: b|\(ours)X-Forwarded-Proto: http|X-Forwarded-Host: h||"),
            (["x-forwarded-proto", "accept"], request, "X-Forwarded-Proto: https|A: b|\(ours)X-Forwarded-Host: h||"),
            (
                ["Forwarded", "X-Forwarded-Host"], request,
                "Forwarded: host=x|X-Forwarded-Host: x|A: b|\(ours)X-Forwarded-Proto: http||"
            ),
            (["x-forwarded-proto"], without, "A: b|\(ours)X-Forwarded-Proto: http|X-Forwarded-Host: h||"),
            (["x-forwarded-proto"], nominated, "\(ours)X-Forwarded-Proto: http|X-Forwarded-Host: h||"),
        ]
        for (keyed, request, expected) in cases {
            let result = try forwarded(keyed, request)
            #expect(result == "GET / HTTP/1.1|Host: h|" + expected)
        }
        let off = try forward(request, nil, .off)
        #expect(off == "GET / HTTP/1.1|Host: h|Forwarded: host=x|X-Forwarded-Proto: https|X-Forwarded-Host: x|A: b||")
    }

    @Test(arguments: [
        ("X-Forwarded-Port: 1", "", true), ("x-forwarded-PREFIX: /a", "", true), ("X_Forwarded_Host: x", "", true),
        ("X-Forwarded_For: x", "", true),
        ("X-Original-URL: /a", "", true), ("X-Rewrite-URL: /a", "", true), ("X_Original_Host: x", "", true),
        ("X-Forwarded-Port: 1", "x-forwarded-port", false), ("X_Forwarded_Port: 1", "x-forwarded-port", true),
        ("X.Forwarded~Host: x", "", true),
        ("X-Forwarded: host=x", "", true), ("X-Host: x", "", true), ("X-HTTP-Host-Override: x", "", true),
        ("X-Scheme: https", "", true),
        ("X-Url-Scheme: https", "", true), ("Front-End-Https: on", "", true), ("X_HOST: x", "", true),
        ("X-Host: x", "x-host", false),
        ("X-HTTP-Method-Override: DELETE", "", true), ("X-Method-Override: PUT", "", true),
        ("X-HTTP-Method: PUT", "", true),
        ("X-HTTP-Method: PUT", "x-http-method", false), ("From: a", "", false), ("X-Hosts: x", "", false),
        ("X: 1", "", false),
        ("X-Original-URI: /a", "", true), ("X-Original-Method: PUT", "", true),
        ("X-Original-URI: /a", "x-original-uri", false), ("X-Original: 1", "", false),
        ("X-Script-Name: /a", "", true), ("X-ProxyScheme: https", "", true),
        ("X-ProxyContextPath: /a", "", true), ("X-Proxy-Id: 1", "", false), ("X-Forward-Proto: https", "", true),
        ("X-Real-Host: x", "", true),
        ("CF-Visitor: {}", "", true), ("CloudFront-Forwarded-Proto: https", "", true),
        ("CloudFront-Forwarded-Proto: https", "cloudfront-forwarded-proto", false), ("WL-Proxy-SSL: true", "", true),
        ("X-ARR-SSL: 1", "", true),
        ("X-HTTP-Path-Override: /a", "", true), ("X-HTTP-DestinationURL: /a", "", true),
        ("X-Envoy-Original-Path: /a", "", true),
        ("Proxy: http://x", "", true), ("Proxy: http://x", "proxy", false), ("Proxy-Id: 1", "", false),
        ("Proxies: 1", "", false),
        ("X-Waws-Unencoded-Url: /a", "", true), ("Cookie2: 1", "", false), ("X-Request-Id: 1", "", false),
        ("Y-Forwarded-Port: 1", "", false),
    ]) func `fields similar to the proxy's own are removed too`(line: String, keyed: String, isDropped: Bool) throws {
        let names = keyed.isEmpty ? [] : [ByteSlice(keyed)]
        let result = try forward(
            "GET / HTTP/1.1\r\nHost: h\r\n\(line)\r\n\r\n", .init(framing: .none, keyed: KeyedForwarding(names)),
            .append, oddNames: true)
        #expect(result.contains("|\(line)|") != isDropped)
    }

    @Test(arguments: [
        "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "CF-Connecting-IPv6", "X-Client-IP", "Client-IP",
        "X-Cluster-Client-IP", "Fastly-Client-IP",
        "X-Remote-IP", "X-Remote-Addr", "X-Originating-IP", "X-ProxyUser-IP", "X-Azure-ClientIP", "Fly-Client-IP",
        "WL-Proxy-Client-IP", "Proxy-Client-IP",
        "X-Appengine-User-IP", "X-Envoy-External-Address", "Forwarded-For", "X-Original-For",
        "X-Original-Forwarded-For", "x_real_ip",
    ])
    func `a field that names the user is forwarded from a trusted proxy, or if it is in the key`(name: String) throws {
        for (method, keyed, isTrusted, fields, isKept) in [
            ("GET", "", false, RequestForwarding.ClientFields.append, false), ("POST", "", false, .append, false),
            ("GET", "", true, .append, true),
            ("GET", name.lowercased(), false, .append, true), ("GET", "", false, .off, true),
        ] {
            let changes = RequestForwarding.Changes(
                framing: .none, keyed: KeyedForwarding(keyed.isEmpty ? [] : [ByteSlice(keyed)]),
                isFromTrustedProxy: isTrusted)
            let result = try forward(
                "\(method) / HTTP/1.1\r\nHost: h\r\n\(name): 192.0.2.66\r\n\r\n", changes, fields, oddNames: true)
            #expect(result.contains("|\(name): 192.0.2.66|") == isKept)
        }
    }

    @Test(arguments: [
        ("X_Tenant", true), ("X.Tenant", true), ("~", true), ("a_", true), ("X-Tenant-Number_7", true),
        ("X-Tenant-7", false), ("-", false),
    ])
    func `confusable names are forwarded only if the operator says so`(name: String, isOdd: Bool)
        throws
    {
        let request = "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\n\(name): 2\r\nB: 3\r\n\r\n"
        let (usual, on) = (try forward(request), try forward(request, oddNames: true))
        #expect(usual == "GET / HTTP/1.1|Host: h|A: 1|\(isOdd ? "" : "\(name): 2|")B: 3||")
        #expect(on == "GET / HTTP/1.1|Host: h|A: 1|\(name): 2|B: 3||")
    }

    @Test(arguments: [("GET", false), ("HEAD", false), ("POST", true), ("PUT", true), ("BREW", true)])
    func `a method override is forwarded only if the response is not shared`(method: String, isKept: Bool) throws {
        let result = try forward(
            "\(method) / HTTP/1.1\r\nHost: h\r\nX-HTTP-Method-Override: DELETE\r\nX-Host: x\r\n\r\n",
            .init(framing: .none, keyed: KeyedForwarding([])), .append)
        #expect(result.contains("|X-HTTP-Method-Override: DELETE|") == isKept)
        #expect(!result.contains("|X-Host: x|"))
    }

    @Test func `the cache replaces conditions and the method`() throws {
        let result = try forward(
            "HEAD / HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"a\"\r\nRange: bytes=0-1\r\nA: b\r\n\r\n",
            .init(method: .get, framing: .none, dropping: FieldSet(.ifNoneMatch) | .range, keyed: KeyedForwarding([])),
            extra: { $0.appendField("If-None-Match", "\"b\"") }
        )
        #expect(result == "GET / HTTP/1.1|Host: h|A: b|If-None-Match: \"b\"||")
    }

    @Test func `Upgrade and TE are forwarded only on request`() throws {
        let request =
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade, te\r\nUpgrade: websocket\r\nTE: gzip, trailers\r\n\r\n"
        let upgraded = try forward(request, .init(framing: .none, keyed: KeyedForwarding([]), isUpgrading: true))
        #expect(upgraded == "GET / HTTP/1.1|Host: h|Connection: Upgrade|Upgrade: websocket||")
        let trailers = try forward(request, .init(framing: .none, keyed: KeyedForwarding([]), acceptsTrailers: true))
        #expect(trailers == "GET / HTTP/1.1|Host: h|Connection: TE|TE: trailers||")
    }
}

@Suite struct FieldForwardingTests {
    @Test(arguments: [
        ("A: 1|B:2|C:\t3|", "A: 1|B:2|C:\t3|"),
        ("A: 1|B:2|Date: x|C:3|", "A: 1|B:2|C:3|"),
        ("Date: x|A: 1|", "A: 1|"),
        ("A: 1|Date: x|", "A: 1|"),
        ("Date: x|", ""),
        ("A: 1  |B:2|", "A: 1|B:2|"),
        ("A:|B:2|", "A:|B:2|"),
        ("Set-Cookie: a|Connection: b, set-cookie|B: 1|C: 2|", "C: 2|"),
        ("", ""),
    ]) func `a response keeps its lines byte for byte`(lines: String, expected: String) throws {
        let message = wire("HTTP/1.1 200 OK\r\n" + lines.replacing("|", with: "\r\n") + "\r\n")
        var parser = ResponseHeadParser()
        _ = try parser.parse(message.span)
        let buffer = ByteBuffer(capacity: 16)
        buffer.appendFields(
            parser.view(in: message.span), connection: parser.head.connection, dropping: FieldSet(.date))
        let result = plain(buffer.span).replacing("\r\n", with: "|")
        #expect(result == expected)
    }

    @Test func `written messages follow the grammar`() {
        let buffer = ByteBuffer(capacity: 16)
        buffer.appendStatusLine(.notModified)
        buffer.appendStatusLine(Status(299), reason: wire("Fine").span)
        buffer.appendStatusLine(Status(299))
        buffer.appendField("Age", 17)
        buffer.appendField("A", "b")
        buffer.appendFraming(.length(3))
        buffer.appendFraming(.chunked)
        buffer.appendFraming(.none)
        buffer.appendChunkHeader(26)
        buffer.appendChunkEnd()
        buffer.appendLastChunk()
        let result = plain(buffer.span).replacing("\r\n", with: "|")
        #expect(
            result
                == "HTTP/1.1 304 Not Modified|HTTP/1.1 299 Fine|HTTP/1.1 299 |Age: 17|A: b|Content-Length: 3|Transfer-Encoding: chunked|1a||0||"
        )
    }
}
