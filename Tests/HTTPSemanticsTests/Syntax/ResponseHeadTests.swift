import HTTPSemantics
import Testing

@Suite struct ResponseHeadTests {
    private static func fields(_ lines: String, status: String = "200 OK", version: String = "1.1") -> String {
        "HTTP/\(version) \(status)\r\n\(lines)\(lines.isEmpty ? "" : "\r\n")\r\n"
    }

    static let table: [(input: String, method: Method, expected: String)] = [
        // Status line (RFC 9112 §4)
        (fields(""), .get, "200 'OK' http11 body=close length=- keep=false head=19"),
        (fields("", status: "200 "), .get, "200 '' http11"),
        (fields("", status: "200"), .get, "200 '' http11"),
        (fields("", status: "404 Not \t\u{e9} Found"), .get, "404 'Not"),
        (fields("", status: "999 x"), .get, "999 'x'"),
        (fields("", status: "099 x"), .get, "502 malformed-status-line"),
        (fields("", status: "20 OK"), .get, "502 malformed-status-line"),
        (fields("", status: "2000 OK"), .get, "502 malformed-status-line"),
        (fields("", status: "2x0 OK"), .get, "502 malformed-status-line"),
        (fields("", status: " 200 OK"), .get, "502 malformed-status-line"),
        (fields("", status: "200\tOK"), .get, "502 malformed-status-line"),
        (fields("", status: "200 O\rK"), .get, "502 malformed-status-line"),
        (fields("", status: "200 O\u{0}K"), .get, "502 malformed-status-line"),
        (fields("", version: "2.0"), .get, "505 version-not-supported"),
        ("ICY 200 OK\r\n\r\n", .get, "502 malformed-status-line @0"),
        ("HTTP/1.1\r\n\r\n", .get, "502 malformed-status-line @0"),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", .get, "502 malformed-status-line @0"),
        ("HTTP/1.1 200 OK\n\n", .get, "400 bare-line-feed"),
        (fields("A: b\r\n c"), .get, "400 folded-line"),
        (fields("A : b"), .get, "400 space-before-colon"),
        // Framing (RFC 9112 §6.3)
        (fields("Content-Length: 5"), .get, "200 'OK' http11 body=5 length=5 keep=true"),
        (fields("Content-Length: 5, 5"), .get, "200 'OK' http11 body=5 length=5 keep=true"),
        (fields("Content-Length: 5\r\nContent-Length: 5"), .get, "200 'OK' http11 body=5 length=5 keep=true"),
        (fields("Content-Length: 5, 6"), .get, "400 content-length-repeated"),
        (fields("Content-Length: 5\r\nContent-Length: 6"), .get, "400 content-length-repeated"),
        (fields("Content-Length: 5, x"), .get, "400 content-length-invalid"),
        (fields("Content-Length: ,"), .get, "400 content-length-invalid"),
        (fields("Content-Length: 5;5"), .get, "400 content-length-invalid"),
        (fields("Transfer-Encoding: chunked"), .get, "200 'OK' http11 body=chunked length=- keep=true"),
        (fields("Transfer-Encoding: chunked\r\nContent-Length: 5"), .get, "400 content-length-with-transfer-encoding"),
        (fields("Transfer-Encoding: gzip, chunked"), .get, "501 transfer-coding-unknown"),
        (fields("Transfer-Encoding: gzip"), .get, "400 chunked-not-final"),
        (fields("Transfer-Encoding: chunked", version: "1.0"), .get, "400 transfer-encoding-in-http-1.0"),
        (fields("Content-Length: 5", version: "1.0"), .get, "200 'OK' http10 body=5 length=5 keep=false"),
        (
            fields("Content-Length: 5\r\nConnection: keep-alive", version: "1.0"), .get,
            "200 'OK' http10 body=5 length=5 keep=true"
        ),
        (fields("Content-Length: 5\r\nConnection: close"), .get, "200 'OK' http11 body=5 length=5 keep=false"),
        (
            fields("Content-Length: 5\r\nConnection: te" + String(repeating: ",te", count: 63)), .get,
            "200 'OK' http11 body=5 length=5 keep=true"
        ),
        (
            fields("Content-Length: 5\r\nConnection: te" + String(repeating: ",te", count: 64)), .get,
            "400 too-many-connection-options"
        ),
        // No body, whatever the fields say
        (fields("Content-Length: 5"), .head, "200 'OK' http11 body=none length=5 keep=true"),
        (fields("Transfer-Encoding: chunked"), .head, "200 'OK' http11 body=none length=- keep=true"),
        (fields("Content-Length: x"), .head, "400 content-length-invalid"),
        (
            fields("Content-Length: 5", status: "304 Not Modified"), .get,
            "304 'Not Modified' http11 body=none length=5 keep=true"
        ),
        (fields("", status: "204 No Content"), .get, "204 'No Content' http11 body=none length=- keep=true"),
        (
            fields("Content-Length: 0", status: "204 No Content"), .get,
            "204 'No Content' http11 body=none length=0 keep=true"
        ),
        (
            fields("Content-Length: 5", status: "204 No Content"), .get,
            "204 'No Content' http11 body=none length=5 keep=false"
        ),
        (
            fields("Transfer-Encoding: chunked", status: "204 No Content"), .get,
            "204 'No Content' http11 body=none length=- keep=false"
        ),
        (fields("", status: "100 Continue"), .post, "100 'Continue' http11 body=none"),
        (fields("Link: </a>", status: "103 Early Hints"), .get, "103 'Early Hints' http11 body=none"),
        (fields("Transfer-Encoding: x\r\nContent-Length: y"), .connect, "200 'OK' http11 body=none length=- "),
        (fields("Content-Length: 5", status: "407 No"), .connect, "407 'No' http11 body=5 "),
    ]

    @Test func `a response is parsed strictly, and its end is never guessed`() {
        for row in Self.table {
            let result = readResponse(wire(row.input), to: row.method)
            #expect(result.hasPrefix(row.expected), "\(row.input.debugDescription) gave \(result)")
        }
    }

    @Test func `the verdict does not depend on how the bytes arrive`() {
        for row in Self.table {
            let atOnce = readResponse(wire(row.input), to: row.method)
            let byByte = readResponse(wire(row.input), .byteByByte, to: row.method)
            #expect(byByte == atOnce, "\(row.input.debugDescription)")
        }
    }
}
