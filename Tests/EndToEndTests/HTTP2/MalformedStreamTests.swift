import Synchronization
import Testing

/// The heads of requests as they reached the origin.
private final class Heads: Sendable {
    private let texts = Mutex<[String]>([])

    var all: [String] { texts.withLock { $0 } }

    func keep(_ request: Received, then steps: [Step]) -> [Step] {
        texts.withLock { $0.append(request.head.text) }
        return steps
    }
}

/// A request that HTTP/2 can express and HTTP/1.1 cannot, or means otherwise there, is refused: nothing of it reaches the
/// origin (RFC 9113 §8.1.1, §10.3).
@Suite(
    .scenario, .overHTTP1("The peer makes its frames itself."),
    .clientsInTheClear("The peer does not ask for HTTP/2 by ALPN."))
struct MalformedStreamTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let what: String
        var block: FieldBlock
        /// What follows the first HEADERS; none: they end the stream.
        var frames: @Sendable (Int) -> [Frame] = { _ in [] }
        var hasMore = false
        /// Whether the origin may have got its head by the time it shows.
        var mayBegin = false
        var testDescription: String { what }

        /// A GET of `/bad` with these fields.
        init(_ what: String, _ fields: Field...) { (self.what, block) = (what, .request("GET", "/bad", fields)) }

        /// A request with these fields instead.
        init(_ what: String, all fields: Field...) { (self.what, block) = (what, FieldBlock(fields)) }

        /// A POST to `/bad` with these fields and frames.
        init(
            _ what: String, _ fields: [Field], mayBegin: Bool = true, _ frames: @escaping @Sendable (Int) -> [Frame]
        ) {
            (self.what, block) = (what, .request("POST", "/bad", fields))
            (self.frames, hasMore, self.mayBegin) = (frames, true, mayBegin)
        }
    }

    private static let start: [Field] = [
        (":method", "GET"), (":scheme", "http"), (":authority", "test.example"), (":path", "/bad"),
    ]

    private static func but(_ name: String, _ value: String?) -> FieldBlock {
        FieldBlock(start.compactMap { $0.name == name ? value.map { (name, $0) } : $0 })
    }

    private static func but(_ what: String, _ name: String, _ value: String?) -> Case {
        var made = Case(what)
        made.block = but(name, value)
        return made
    }

    static let values: [Case] = [
        Case("CR in a value", ("x", "a\rb")), Case("LF in a value", ("x", "a\nb")),
        Case("NUL in a value", ("x", "a\0b")),
        Case("CRLF and a field in a value", ("x", "a\r\ny: b")),
        Case("CRLF and a request in a value", ("x", "a\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")),
        Case("LF at the end of a value", ("x", "a\n")), Case("space before a value", ("x", " a")),
        Case("space behind a value", ("x", "a ")), Case("tab behind a value", ("x", "a\t")),
        Case("CR in a name", ("x\ry", "a")), Case("LF in a name", ("x\ny", "a")), Case("NUL in a name", ("x\0y", "a")),
        Case("CRLF and a field in a name", ("x: y\r\nz", "a")), Case("a colon in a name", ("x:y", "a")),
        Case("a space in a name", ("x y", "a")), Case("a space behind a name", ("x ", "a")), Case("no name", ("", "a")),
        Case("an upper-case name", ("Upper", "a")),
        Case("an upper-case transfer-encoding", ("Transfer-Encoding", "chunked")),
        Case("a name beyond ASCII", ("x\u{e9}", "a")), Case("a name of DEL", ("x\u{7f}", "a")),
        Case("CRLF in a cookie", ("cookie", "a=b\r\nx: y")), Case("CRLF in host", ("host", "test.example\r\nx: y")),
    ]

    static let fields: [Case] = [
        Case("transfer-encoding", ("transfer-encoding", "chunked")),
        Case("transfer-encoding of identity", ("transfer-encoding", "identity")),
        Case("connection", ("connection", "close")),
        Case("connection that names a field", ("connection", "x"), ("x", "y")),
        Case("te of gzip", ("te", "gzip")), Case("te of trailers and gzip", ("te", "trailers, gzip")),
        Case("keep-alive", ("keep-alive", "timeout=5")), Case("upgrade", ("upgrade", "websocket")),
        Case("proxy-connection", ("proxy-connection", "keep-alive")),
        Case("another host than :authority", ("host", "other.example")),
        Case("two hosts", ("host", "test.example"), ("host", "other.example")),
        Case("a pseudo-header field behind others", ("x", "y"), (":path", "/other")),
        Case("an unknown pseudo-header field", (":unknown", "x")), Case(":status in a request", (":status", "200")),
        Case(":protocol that was not offered", (":protocol", "websocket")), Case("a second :path", (":path", "/other")),
        Case("a second :method", (":method", "POST")), Case("a second :authority", (":authority", "other.example")),
        Case("a second :scheme", (":scheme", "https")),
        Case(
            "no :method first but a field", all: ("x", "y"), (":method", "GET"), (":scheme", "http"),
            (":authority", "test.example"), (":path", "/bad")),
        but("no :method", ":method", nil), but("no :path", ":path", nil), but("no :scheme", ":scheme", nil),
        but("no :authority", ":authority", nil), but("an empty :authority", ":authority", ""),
        but("an empty :method", ":method", ""), but("a space in :method", ":method", "GET /smuggled HTTP/1.1\r\nx:"),
        but("a space behind :method", ":method", "GET "), but("a line end in :method", ":method", "GET\r\n"),
        but("a :method that is no token", ":method", "G(T"), but("an empty :path", ":path", ""),
        but("a space in :path", ":path", "/bad /other"), but("a version in :path", ":path", "/bad HTTP/1.1\r\nx: y"),
        but("a tab in :path", ":path", "/bad\tx"), but("a NUL in :path", ":path", "/bad\0"),
        but("a :path without its /", ":path", "bad"),
        but("a :path of a whole URL", ":path", "http://other.example/bad"),
        but("a :path of * for GET", ":path", "*"), but("a fragment in :path", ":path", "/bad#x"),
        but("userinfo in :authority", ":authority", "user@test.example"),
        but("userinfo with a password", ":authority", "user:word@test.example:80"),
        but("a path in :authority", ":authority", "test.example/other"),
        but("a space in :authority", ":authority", "test.example other"),
        but("a line end in :authority", ":authority", "test.example\r\nx: y"),
        but("an odd :scheme", ":scheme", "ht tp"), but("a line end in :scheme", ":scheme", "http\r\nx: y"),
        but("an empty :scheme", ":scheme", ""), but("a URL in :scheme", ":scheme", "http://other.example/?"),
        but("CONNECT with a path", ":method", "CONNECT"),
        Case("CONNECT", all: (":method", "CONNECT"), (":authority", "test.example:443")),
        Case("CONNECT to a name", all: (":method", "CONNECT"), (":authority", "/bad")),
    ]

    static let lengths: [Case] = [
        Case("two lengths", [("content-length", "3"), ("content-length", "5")], mayBegin: false) {
            [.data($0, "abc", ends: true)]
        },
        Case("a list of lengths", [("content-length", "3, 5")], mayBegin: false) { [.data($0, "abc", ends: true)] },
        Case("a signed length", [("content-length", "+3")], mayBegin: false) { [.data($0, "abc", ends: true)] },
        Case("a length of no number", [("content-length", "three")], mayBegin: false) {
            [.data($0, "abc", ends: true)]
        },
        Case("an absurd length", [("content-length", "99999999999999999999")], mayBegin: false) {
            [.data($0, "abc", ends: true)]
        },
        Case("an empty length", [("content-length", "")], mayBegin: false) { [.data($0, "abc", ends: true)] },
        Case("more content than said", [("content-length", "3")]) {
            [.data($0, "abcGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", ends: true)]
        },
        Case("more content than said, later", [("content-length", "3")]) {
            [.data($0, "abc"), .data($0, "def", ends: true)]
        },
        Case("less content than said", [("content-length", "30")]) { [.data($0, "abc", ends: true)] },
        Case("no content but a length", [("content-length", "30")]) { [.data($0, ends: true)] },
        Case("trailers instead of content", [("content-length", "30")]) { [.headers($0, FieldBlock([("x", "y")]))] },
        Case("a pseudo-header field in trailers", []) {
            [.data($0, "abc"), .headers($0, FieldBlock([(":path", "/x")]))]
        },
        Case("transfer-encoding in trailers", []) {
            [.data($0, "abc"), .headers($0, FieldBlock([("transfer-encoding", "chunked")]))]
        },
        Case("CRLF in trailers", []) {
            [.data($0, "abc"), .headers($0, FieldBlock([("x", "a\r\n\r\nGET /smuggled")]))]
        },
        Case("an upper-case name in trailers", []) { [.data($0, "abc"), .headers($0, FieldBlock([("Upper", "a")]))] },
        Case("trailers that do not end the stream", []) {
            [.data($0, "abc"), .headers($0, FieldBlock([("x", "a")]), ends: false)]
        },
    ]

    /// Each on a connection that serves another stream before and behind it, unless the program ends it.
    private func check(_ bad: Case) throws {
        try scenario { origin, proxy in
            origin.on("/good") { _ in [.answer(200, "Cache-Control: no-store", body: "good")] }
            let heads = Heads()
            origin.on("*") { heads.keep($0, then: [.requestBody, .answer(200, body: "bad")]) }
            let peer = try FramePeer(with: proxy)
            let before = try peer.fetch("/good")
            #expect(before.text == "good", "\(peer.soFar)")
            let stream = peer.newStream()
            try peer.send([.headers(stream, bad.block, ends: !bad.hasMore)] + bad.frames(stream))
            let answer = try peer.finished(stream, within: .seconds(5))
            let isRefused =
                answer.reset == .protocolError || (400..<500).contains(answer.status) || answer.status == 501
            #expect(isRefused || peer.goAway == .protocolError, "\(peer.soFar)")
            if peer.goAways.isEmpty {
                let after = try peer.fetch("/good")
                #expect(after.text == "good", "\(peer.soFar)")
            }
            #expect(try proxy.send("GET", "/good").text == "good")
            let others = origin.total - origin.count("/good")
            if bad.mayBegin {
                #expect(others <= 1 && origin.requests("/bad").allSatisfy { !$0.isWhole }, "no whole request")
            } else {
                #expect(others == 0, "\(heads.all)")
            }
            #expect(origin.count("/smuggled") == 0)
        }
    }

    @Test(arguments: values)
    func `a name or value that would change the lines around it is refused`(_ bad: Case) throws { try check(bad) }

    @Test(arguments: fields)
    func `a request with fields that HTTP 2 forbids is refused`(_ bad: Case) throws { try check(bad) }

    @Test(arguments: lengths)
    func `a request whose content is not what it says is refused, and is whole to no origin`(_ bad: Case) throws {
        try check(bad)
    }

    /// RFC 9113 §8.3.1, §8.2.3, §8.2.2.
    @Test func `what only looks odd reaches the origin as one clean request`() throws {
        try scenario { origin, proxy in
            let heads = Heads()
            origin.on("*") { heads.keep($0, then: [.requestBody, .answer(200, "Cache-Control: no-store", body: "x")]) }
            let peer = try FramePeer(with: proxy)
            func ask(_ block: FieldBlock) throws -> StreamAnswer { try peer.finished(peer.open(block)) }
            let fine: [(FieldBlock, String)] = [
                (.request("GET", "/te", [("te", "trailers")]), "/te"),
                (.request("GET", "/host", [("host", "test.example")]), "/host"),
                (
                    FieldBlock([
                        (":method", "GET"), (":scheme", "http"), (":path", "/only-host"), ("host", "a.example"),
                    ]),
                    "/only-host"
                ),
                (.request("GET", "/cookie", [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]), "/cookie"),
                (.request("GET", "/empty", [("x", "")]), "/empty"),
                (.request("GET", "/%0d%0a?x=%00", []), "/%0d%0a"),
                (.request("OPTIONS", "*", []), "*"),
            ]
            for (block, path) in fine {
                let answer = try ask(block)
                #expect(answer.status == 200, "\(path): \(peer.soFar)")
                if path != "*" { #expect(origin.count(path) == 1, "\(path)") }
            }
            #expect(origin.requests("/cookie").first?.head.all("cookie") == ["a=1; b=2"])
            #expect(origin.requests("/host").first?.head.all("host").count == 1)
            #expect(origin.requests("/only-host").first?["host"] == "a.example")
            #expect(origin.requests("/te").first?.head.all("connection").contains { $0.lowercased() == "te" } ?? false)
            #expect(heads.all.count == fine.count)
            for head in heads.all { #expect(!head.contains(":method") && head.hasSuffix("\r\n\r\n"), "\(head)") }
        }
    }
}
