import Bytes
import Testing

@testable import HTTP2

/// The head in HTTP/1.1 that a request of HTTP/2 becomes.
@Suite struct RequestTextTests {
    /// - Parameter lines: each `name: value`; the name ends at the first `: `.
    static func text(_ lines: [String], hasContent: Bool = false, mostLines: Int = 20, mostBytes: Int = 2000)
        throws(RequestText.Fault) -> String
    {
        let made = RequestText(isSecure: true, mostLines: mostLines, mostBytes: mostBytes)
        made.begin()
        for line in lines {
            // Behind the colon of a pseudo-header field, and behind an empty name.
            let parts = line.dropFirst().split(separator: ": ", maxSplits: 1, omittingEmptySubsequences: false)
            let (name, value) =
                line.hasPrefix(": ")
                ? (ByteSlice(""), ByteSlice(String(line.dropFirst(2))))
                : (ByteSlice(String(line.prefix(1) + parts[0])), ByteSlice(String(parts[1])))
            try made.add(name: name.span, value: value.span)
        }
        try made.finish(hasContent: hasContent)
        let text = made.text
        return String(decoding: (0..<text.count).map { text.span[$0] }, as: UTF8.self)
    }

    private static let get = [":method: GET", ":scheme: https", ":authority: a.example", ":path: /x?y"]

    @Test func `control data becomes the request line and Host, and cookies one line`() throws {
        let lines = Self.get + ["accept: */*", "cookie: a=b", "x-a: 1", "cookie: c=d", "te: trailers"]
        let text = try Self.text(lines)
        #expect(
            text == """
                GET /x?y HTTP/1.1\r
                host: a.example\r
                accept: */*\r
                x-a: 1\r
                te: trailers\r
                cookie: a=b; c=d\r
                \r

                """)
    }

    @Test(arguments: [
        (
            [":method: GET", ":scheme: https", ":path: /", "host: a.example"],
            "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n"
        ),
        (get + ["host: A.example"], "GET /x?y HTTP/1.1\r\nhost: a.example\r\n\r\n"),
        (
            [":method: GET", ":scheme: http", ":authority: a.example", ":path: /"],
            "GET http://a.example/ HTTP/1.1\r\nhost: a.example\r\n\r\n"
        ),
        (
            [":method: OPTIONS", ":scheme: https", ":authority: a.example", ":path: *"],
            "OPTIONS * HTTP/1.1\r\nhost: a.example\r\n\r\n"
        ),
        ([":method: CONNECT", ":authority: a:1"], "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n"),
    ])
    func `other requests have their form in HTTP 1_1`(_ lines: [String], _ text: String) throws {
        #expect(try Self.text(lines) == text)
    }

    @Test func `content has its length, or is chunked`() throws {
        let post = [":method: POST"] + Self.get.dropFirst()
        let sized = try Self.text(post + ["content-length: 5"], hasContent: true)
        #expect(sized.hasSuffix("\r\ncontent-length: 5\r\n\r\n") && !sized.contains("chunked"))
        let open = try Self.text(post, hasContent: true)
        #expect(open.hasSuffix("\r\ntransfer-encoding: chunked\r\n\r\n"))
        let none = try Self.text(post)
        #expect(none.hasSuffix("\r\nhost: a.example\r\n\r\n"))
    }

    @Test(arguments: [
        // RFC 9113 §8.2.1.
        get + ["X-A: 1"], get + ["x a: 1"], get + ["x:a: 1"], get + [": 1"], get + ["x-a: a\r\nb: c"],
        get + ["x-a: a\nb"], get + ["x-a: a\rb"], get + ["x-a: a\0b"], get + ["x-a:  a"], get + ["x-a: a "],
        get + ["x-a: a\t"], get + ["x\r\ny: 1"], get + ["x\u{7F}: 1"], get + ["é: 1"],
        // §8.2.2.
        get + ["connection: close"], get + ["keep-alive: 1"], get + ["proxy-connection: close"],
        get + ["transfer-encoding: chunked"], get + ["upgrade: h2c"], get + ["te: gzip"], get + ["te: trailers, gzip"],
        // §8.3: pseudo-header fields that are missing, repeated, unknown, empty or late.
        Array(get.dropFirst()), [get[0], get[2], get[3]], Array(get.dropLast()), [get[0], get[1], get[3]],
        get + [":method: GET"], get + [":path: /"], get + [":protocol: websocket"], get + [":status: 200"],
        get.dropLast() + ["x-a: 1", ":path: /"], [":method: ", get[1], get[2], get[3]],
        [get[0], get[1], get[2], ":path: "],
        // §8.3.1: values that would be more than a part of the request line.
        [get[0], get[1], get[2], ":path: /a HTTP/1.1"], [get[0], get[1], get[2], ":path: /a\r\nb: c"],
        [get[0], get[1], get[2], ":path: x"], [get[0], get[1], get[2], ":path: **"],
        [":method: GET /", get[1], get[2], get[3]], [get[0], get[1], ":authority: a b", get[3]],
        [get[0], ":scheme: ht tp", get[2], get[3]],
        // Another host.
        get + ["host: b.example"], get + ["host: "], [get[0], get[1], get[3], "host: a", "host: b"],
        [get[0], ":scheme: http", get[3], "host: a.example"],
        // §8.5.
        [":method: CONNECT", ":authority: a:1", ":path: /"], [":method: CONNECT", ":authority: a:1", ":scheme: https"],
        [":method: CONNECT"],
    ])
    func `a malformed field section is no request`(_ lines: [String]) {
        #expect(throws: RequestText.Fault.malformed) { try Self.text(lines) }
    }

    @Test func `the bytes of a section are bounded, with 32 for each line and crumb`() throws {
        let crumbs = (0..<17).map { _ in "cookie: a" }
        #expect(throws: RequestText.Fault.tooLarge) { try Self.text(Self.get + crumbs) }
        _ = try Self.text(Self.get + crumbs.dropLast())
        #expect(throws: RequestText.Fault.tooLarge) {
            try Self.text(Self.get + ["x: " + String(repeating: "a", count: 1800)])
        }
        // The fault is the same after one that went well.
        _ = try Self.text(Self.get + ["x: " + String(repeating: "a", count: 1700)])
    }
}
