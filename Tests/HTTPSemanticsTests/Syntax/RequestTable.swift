/// A request and the start of its transcript, or the answer it is refused with.
struct RequestCase: Sendable {
    let input: String
    let expected: String
    init(_ input: String, _ expected: String) {
        self.input = input
        self.expected = expected
    }
}

/// A request with these field lines, and what comes of it.
private func fields(_ lines: String, _ expected: String, version: String = "1.1") -> RequestCase {
    RequestCase("POST / HTTP/\(version)\r\n\(lines)\r\n\r\n", expected)
}

private func hosted(_ lines: String, _ expected: String) -> RequestCase { fields("Host: a\r\n\(lines)", expected) }

/// A request line with a valid Host behind it.
private func line(_ line: String, _ expected: String) -> RequestCase {
    RequestCase("\(line)\r\nHost: a\r\n\r\n", expected)
}

enum RequestTable {
    static let requestLines: [RequestCase] = [
        line("GET / HTTP/1.1", "GET / http11 origin host=a path=/ query=- body=none keep=true"),
        line("GET /a/b?c=d HTTP/1.1", "GET /a/b?c=d http11 origin host=a path=/a/b query=c=d "),
        line("GET /? HTTP/1.1", "GET /? http11 origin host=a path=/ query= "),
        line("GET /?a?b HTTP/1.1", "GET /?a?b http11 origin host=a path=/ query=a?b "),
        line("get / HTTP/1.1", "get / http11"),
        line("BREW+1 / HTTP/1.1", "BREW+1 / http11"),
        line("GET //x HTTP/1.1", "GET //x http11 origin host=a path=//x"),
        line("GET / HTTP/1.2", "GET / http11"),
        line("GET / HTTP/1.0", "GET / http10"),
        line("GET /|{}\"^`[] HTTP/1.1", "GET /|{}\"^`[] http11"),
        line("GET  / HTTP/1.1", "400 target-invalid"),
        line("GET /  HTTP/1.1", "400 target-invalid"),
        line("GET / HTTP/1.1 ", "400 malformed-request-line"),
        line(" GET / HTTP/1.1", "400 malformed-request-line @0"),
        line("GET\t/ HTTP/1.1", "400 malformed-request-line @3"),
        line("GET /\tHTTP/1.1", "400 malformed-request-line"),
        line("GET /\u{0b}x HTTP/1.1", "400 target-invalid"),
        line("GET /\u{0}x HTTP/1.1", "400 target-invalid"),
        line("GET /\rx HTTP/1.1", "400 target-invalid"),
        line("GET /\u{7f} HTTP/1.1", "400 target-invalid"),
        line("GET /\u{e9} HTTP/1.1", "400 target-invalid"),
        line("GET /a b HTTP/1.1", "400 target-invalid"),
        line("GET /a#b HTTP/1.1", "400 target-invalid"),
        line("GET a HTTP/1.1", "400 target-invalid"),
        line("GET ?a HTTP/1.1", "400 target-invalid"),
        line("G(T / HTTP/1.1", "400 malformed-request-line @1"),
        line("G\u{e9}T / HTTP/1.1", "400 malformed-request-line @1"),
        line("GET HTTP/1.1", "400 malformed-request-line"),
        line("GET  HTTP/1.1", "400 malformed-request-line"),
        line("GET /", "400 malformed-request-line"),
        line("GET", "400 malformed-request-line"),
        line("GET / http/1.1", "400 version-invalid"),
        line("GET / HTTP/1,1", "400 version-invalid"),
        line("GET / HTTP/1.x", "400 version-invalid"),
        line("GET / HTTP/+.1", "400 version-invalid"),
        line("GET / HTTP/11.1", "400 malformed-request-line"),
        line("GET / HTTP/2.0", "505 version-not-supported"),
        line("GET / HTTP/0.9", "505 version-not-supported"),
        line("PRI * HTTP/2.0", "505 version-not-supported"),
        line("\(String(repeating: "M", count: 32)) / HTTP/1.1", "MMMM"),
        line("\(String(repeating: "M", count: 33)) / HTTP/1.1", "501 method-too-long @0"),
        RequestCase("\u{16}\u{3}\u{1}", "400 tls-hello @0"),
        line("PROXY TCP4 192.0.2.1 192.0.2.2 1234 80", "400 proxy-protocol @0"),
        line("PROXY TCP6 2001:db8::1 2001:db8::2 1234 80", "400 proxy-protocol @0"),
        line("PROXY UNKNOWN", "400 proxy-protocol @0"),
        line("PROXY T / HTTP/1.1", "400 target-invalid"),
        RequestCase("GET / HTTP/1.1\nHost: a\n\n", "400 bare-line-feed @14"),
        RequestCase("GET / HTTP/1.1\r\nHost: a\r\n\n", "400 bare-line-feed @25"),
        RequestCase("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "400 bare-line-feed @23"),
        RequestCase("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / http11"),
        RequestCase("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 too-many-empty-lines @4"),
        RequestCase("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bare-line-feed @0"),
        RequestCase("\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 malformed-request-line"),
        RequestCase("", "incomplete"),
        RequestCase("GET / HTTP/1.1\r\nHost: a\r\n", "incomplete"),
        RequestCase("GET / HTTP/1.1\r\nHost: a\r\n\r", "incomplete"),
        RequestCase(
            "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /next",
            "GET / http11 origin host=a path=/ query=- body=none keep=true expect=none upgrade=false head=27 [Host=a]"),
    ]

    static let targets: [RequestCase] = [
        line("GET http://b/c?d HTTP/1.1", "GET http://b/c?d http11 absolute host=b path=/c query=d "),
        line("GET HTTPS://b:443 HTTP/1.1", "GET HTTPS://b:443 http11 absolute host=b:443 path= query=- "),
        line("GET http://b?d HTTP/1.1", "GET http://b?d http11 absolute host=b path= query=d "),
        line("GET http:///c HTTP/1.1", "400 target-invalid"),
        line("GET http://:80/c HTTP/1.1", "400 target-invalid"),
        line("GET http://u@b/c HTTP/1.1", "400 target-invalid"),
        line("GET http://u:p@b/c HTTP/1.1", "400 target-invalid"),
        line("GET http:b HTTP/1.1", "400 target-invalid"),
        line("GET ftp://b/ HTTP/1.1", "GET ftp://b/ http11 absolute host=b path=/ query=- "),
        line("GET ftp:b HTTP/1.1", "400 target-invalid"),
        line("GET ftp:///c HTTP/1.1", "400 target-invalid"),
        line("GET ://b/ HTTP/1.1", "400 target-invalid"),
        line("GET f/t://b/ HTTP/1.1", "400 target-invalid"),
        line("GET http://b:99999/ HTTP/1.1", "400 target-invalid"),
        line("GET http://b\\c/ HTTP/1.1", "400 target-invalid"),
        line("OPTIONS * HTTP/1.1", "OPTIONS * http11 asterisk host=a path= query=- "),
        line("OPTIONS http://b HTTP/1.1", "OPTIONS http://b http11 absolute host=b "),
        line("GET * HTTP/1.1", "400 target-invalid"),
        line("OPTIONS ** HTTP/1.1", "400 target-invalid"),
        line("CONNECT b:443 HTTP/1.1", "CONNECT b:443 http11 authority host=b:443 "),
        line("CONNECT b HTTP/1.1", "400 target-invalid"),
        line("CONNECT b: HTTP/1.1", "400 target-invalid"),
        line("CONNECT :443 HTTP/1.1", "400 target-invalid"),
        line("CONNECT /b HTTP/1.1", "400 target-invalid"),
        line("GET b:443 HTTP/1.1", "400 target-invalid"),
    ]

    static let fieldLines: [RequestCase] = [
        hosted(
            "X:y",
            "POST / http11 origin host=a path=/ query=- body=none keep=true expect=none upgrade=false head=33 [Host=a] [X=y]"
        ),
        hosted(
            "X: \t y z \t ",
            "POST / http11 origin host=a path=/ query=- body=none keep=true expect=none upgrade=false head=41 [Host=a] [X=y z]"
        ),
        hosted("X:", "POST / http11"),
        hosted("X: \u{80}\u{ff}", "POST / http11"),
        hosted("X: a\tb", "POST / http11"),
        hosted("X : y", "400 space-before-colon @27"),
        hosted("X\t: y", "400 space-before-colon @27"),
        hosted(" X: y", "400 folded-line @26"),
        hosted("X: y\r\n z", "400 folded-line @32"),
        hosted("X: y\r\n\tz", "400 folded-line @32"),
        fields(" X: y\r\nHost: a", "400 folded-line @17"),
        hosted(": y", "400 field-name-invalid @26"),
        hosted("X", "400 field-name-invalid"),
        hosted("X\u{0}: y", "400 field-name-invalid"),
        hosted("X(: y", "400 field-name-invalid"),
        hosted("X\u{e9}: y", "400 field-name-invalid"),
        hosted("X\u{0b}: y", "400 field-name-invalid"),
        hosted("X: \u{0}", "400 field-value-invalid"),
        hosted("X: a\u{0b}b", "400 field-value-invalid"),
        hosted("X: a\rb", "400 field-value-invalid"),
        hosted("X: a\r\r", "400 field-value-invalid"),
        hosted("X: a\u{7f}", "400 field-value-invalid"),
        hosted("X: long enough for vectors, with a bad byte at the end\u{1b}", "400 field-value-invalid"),
        hosted("\u{1b}X: long enough for vectors", "400 field-name-invalid"),
        hosted("X: \u{1b}long enough for vectors, bad at the start", "400 field-value-invalid"),
    ]

    static let hosts: [RequestCase] = [
        fields("X: y", "400 host-missing"),
        fields("X: y", "POST / http10 origin host= ", version: "1.0"),
        fields("Host: a\r\nHost: a", "400 host-repeated @26"),
        fields("Host: a\r\nHost: b", "400 host-repeated", version: "1.0"),
        fields("Host: a, b", "400 host-invalid"),
        fields("Host: a/b", "400 host-invalid"),
        fields("Host: u@a", "400 host-invalid"),
        fields("Host: a:b", "400 host-invalid"),
        fields("Host: a:80:80", "400 host-invalid"),
        fields("Host: a:65536", "400 host-invalid"),
        fields("Host: [::1", "400 host-invalid"),
        fields("Host: [::g]", "400 host-invalid"),
        fields("Host: ::1", "400 host-invalid"),
        fields("Host:", "400 host-invalid"),
        fields("Host: :80", "400 host-invalid"),
        fields("Host: [::1]:8080", "POST / http11 origin host=[::1]:8080 "),
        fields("Host: A-b_c.example.:8080", "POST / http11 origin host=A-b_c.example.:8080 "),
        fields("Host: a%41", "POST / http11 origin host=a%41 "),
        fields("Host: a%4", "400 host-invalid"),
        RequestCase("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b/ http11 absolute host=b "),
        RequestCase("GET http://b/ HTTP/1.1\r\nHost:\r\n\r\n", "GET http://b/ http11 absolute host=b "),
        RequestCase("GET http://b/ HTTP/1.1\r\n\r\n", "400 host-missing"),
        RequestCase("GET http://b/ HTTP/1.1\r\nHost: b\r\nHost: b\r\n\r\n", "400 host-repeated"),
        RequestCase("GET http://b/ HTTP/1.1\r\nHost: b@c\r\n\r\n", "400 host-invalid"),
        RequestCase("GET http://b/ HTTP/1.0\r\n\r\n", "GET http://b/ http10 absolute host=b "),
    ]

    static let framing: [RequestCase] = [
        hosted("Content-Length: 0", "POST / http11 origin host=a path=/ query=- body=0 "),
        hosted("Content-Length: 007", "POST / http11 origin host=a path=/ query=- body=7 "),
        hosted(
            "Content-Length: 9223372036854775807",
            "POST / http11 origin host=a path=/ query=- body=9223372036854775807 "),
        hosted("Content-Length: 9223372036854775808", "400 content-length-invalid @26"),
        hosted("Content-Length: 99999999999999999999999", "400 content-length-invalid"),
        hosted("Content-Length: 18446744073709551617", "400 content-length-invalid"),
        hosted("Content-Length:", "400 content-length-invalid"),
        hosted("Content-Length: +5", "400 content-length-invalid"),
        hosted("Content-Length: -5", "400 content-length-invalid"),
        hosted("Content-Length: 0x5", "400 content-length-invalid"),
        hosted("Content-Length: 5 5", "400 content-length-invalid"),
        hosted("Content-Length: 5, 5", "400 content-length-invalid"),
        hosted("Content-Length: 5,", "400 content-length-invalid"),
        hosted("Content-Length: 5\r\nContent-Length: 5", "400 content-length-repeated"),
        hosted("Content-Length: 5\r\ncontent-length: 6", "400 content-length-repeated"),
        hosted("Transfer-Encoding: chunked", "POST / http11 origin host=a path=/ query=- body=chunked "),
        hosted("transfer-encoding:CHUNKED", "POST / http11 origin host=a path=/ query=- body=chunked "),
        hosted("Content-Length: 5\r\nTransfer-Encoding: chunked", "400 content-length-with-transfer-encoding"),
        hosted("Transfer-Encoding: chunked\r\nContent-Length: 5", "400 content-length-with-transfer-encoding"),
        hosted("Transfer-Encoding: chunked\r\nContent-Length: x", "400 content-length-with-transfer-encoding"),
        hosted("Transfer-Encoding: identity\r\nContent-Length: 5", "400 content-length-with-transfer-encoding"),
        hosted("Transfer-Encoding : chunked", "400 space-before-colon"),
        hosted("Transfer-Encoding\u{0b}: chunked", "400 field-name-invalid"),
        hosted("Transfer-Encoding:\u{0b}chunked", "400 field-value-invalid"),
        hosted("Transfer-Encoding: \u{0c}chunked", "400 field-value-invalid"),
        hosted("Transfer-Encoding:\tchunked", "POST / http11 origin host=a path=/ query=- body=chunked "),
        hosted("Transfer-Encoding: chunked\t", "POST / http11 origin host=a path=/ query=- body=chunked "),
        hosted("Transfer-Encoding: xchunked", "400 chunked-not-final"),
        hosted("Transfer-Encoding: \"chunked\"", "400 chunked-not-final"),
        hosted("Transfer-Encoding: chunked;q=1", "400 chunked-not-final"),
        hosted("Transfer-Encoding: identity", "400 chunked-not-final"),
        hosted("Transfer-Encoding: chunked, identity", "400 chunked-not-final"),
        hosted("Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "400 chunked-not-final"),
        hosted("Transfer-Encoding: x\r\nTransfer-Encoding: chunked", "501 transfer-coding-unknown"),
        hosted("Transfer-Encoding: gzip, chunked", "501 transfer-coding-unknown"),
        hosted("Transfer-Encoding: identity, chunked", "501 transfer-coding-unknown"),
        hosted("Transfer-Encoding: chunked, chunked", "400 chunked-repeated"),
        hosted("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "400 chunked-repeated"),
        hosted("Transfer-Encoding:", "400 transfer-encoding-invalid"),
        hosted("Transfer-Encoding: ,chunked", "400 transfer-encoding-invalid"),
        hosted("Transfer-Encoding: chunked,", "400 transfer-encoding-invalid"),
        hosted("Transfer-Encoding:\r\n chunked", "400 folded-line"),
        hosted("Transfer_Encoding: chunked", "POST / http11 origin host=a path=/ query=- body=none "),
        fields("Transfer-Encoding: chunked", "400 transfer-encoding-in-http-1.0", version: "1.0"),
        fields("Transfer-Encoding: chunked\r\nContent-Length: 3", "400 transfer-encoding-in-http-1.0", version: "1.0"),
    ]

    private static func members(_ name: String, _ count: Int) -> String {
        Array(repeating: name, count: count).joined(separator: ",")
    }

    static let connections: [RequestCase] =
        [
            hosted("Connection: close", "POST / http11 origin host=a path=/ query=- body=none keep=false "),
            hosted("Connection: x, CLOSE", "POST / http11 origin host=a path=/ query=- body=none keep=false "),
            hosted(
                "Connection: x\r\nConnection: close", "POST / http11 origin host=a path=/ query=- body=none keep=false "
            ),
            hosted("Connection: closed", "POST / http11 origin host=a path=/ query=- body=none keep=true "),
            hosted("Connection: keep-alive", "POST / http11 origin host=a path=/ query=- body=none keep=true "),
            hosted("Connection: \"close\"", "400 connection-option-invalid @26"),
            hosted("Connection: a b", "400 connection-option-invalid"),
            hosted("Connection: ,,", "POST / http11 origin host=a path=/ query=- body=none keep=true "),
            hosted("Connection: \(members("x", 64))", "POST / http11"),
            hosted("Connection: \(members("x", 65))", "400 too-many-connection-options"),
            hosted("Connection: \(members("te", 64)),zz", "400 too-many-connection-options"),
            hosted("Connection: \(members("", 65))", "400 too-many-connection-options"),
            hosted(
                String(repeating: "Connection:\r\n", count: 64) + "Connection: x", "400 too-many-connection-options"),
            hosted("Connection: \(members("x", 32))\r\nConnection: \(members("x", 32))", "POST / http11"),
            hosted(
                "Connection: \(members("x", 32))\r\nConnection: \(members("x", 33))", "400 too-many-connection-options"),
            hosted("Connection: \(String(repeating: "x", count: 1024))", "POST / http11"),
            hosted("Connection: \(String(repeating: "x", count: 1025))", "400 too-many-connection-options"),
            hosted("Connection: x,\(String(repeating: " ", count: 1024))y", "400 too-many-connection-options"),
            fields("X: y", "POST / http10 origin host= path=/ query=- body=none keep=false ", version: "1.0"),
            fields(
                "Connection: keep-alive", "POST / http10 origin host= path=/ query=- body=none keep=true ",
                version: "1.0"),
            fields(
                "Connection: keep-alive, close", "POST / http10 origin host= path=/ query=- body=none keep=false ",
                version: "1.0"),
            hosted(
                "Expect: 100-continue",
                "POST / http11 origin host=a path=/ query=- body=none keep=true expect=continue "),
            hosted(
                "Expect: 100-Continue",
                "POST / http11 origin host=a path=/ query=- body=none keep=true expect=continue "),
            hosted("Expect: tea", "POST / http11 origin host=a path=/ query=- body=none keep=true expect=unknown "),
            hosted(
                "Expect: 100-continue\r\nExpect: tea",
                "POST / http11 origin host=a path=/ query=- body=none keep=true expect=unknown "),
            fields(
                "Expect: 100-continue", "POST / http10 origin host= path=/ query=- body=none keep=false expect=none ",
                version: "1.0"),
            hosted(
                "Connection: Upgrade\r\nUpgrade: websocket",
                "POST / http11 origin host=a path=/ query=- body=none keep=true expect=none upgrade=true "),
            fields(
                "Connection: upgrade\r\nUpgrade: websocket",
                "POST / http10 origin host= path=/ query=- body=none keep=false expect=none upgrade=false ",
                version: "1.0"),
            hosted(
                "Upgrade: websocket",
                "POST / http11 origin host=a path=/ query=- body=none keep=true expect=none upgrade=false "),
            hosted(
                "Connection: upgrade",
                "POST / http11 origin host=a path=/ query=- body=none keep=true expect=none upgrade=false "),
        ]
        + [
            ("websocket", true), ("WebSocket/13, foo", true), ("foo\r\nUpgrade: bar/1.0", true), (", foo", true),
            ("h2cs", true), ("x-http/2", true),
            ("", false), (",", false), ("foo, H2C", false), ("foo\r\nUpgrade: h2", false), ("h2c/1", false),
            ("HTTP/2.0", false), ("Http", false),
            ("TLS/1.0", false), ("websocket, tls", false), ("\"h2c\"", false), ("x h2c", false), ("h2c;q=1", false),
            ("foo/", false), ("/1", false),
            ("foo/1/2", false),
        ].map { protocols, isTaken in
            hosted(
                "Connection: Upgrade\r\nUpgrade: \(protocols)",
                "POST / http11 origin host=a path=/ query=- body=none keep=true expect=none upgrade=\(isTaken) ")
        }

    static let all = requestLines + targets + fieldLines + hosts + framing + connections
}
