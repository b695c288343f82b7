import Testing

/// An origin that fails is not asked once for every client.
@Suite(.scenario) struct UpstreamErrorTests {
    @Test func `a hundred clients share one 503`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/busy") { _ in [.gate(gate), .answer(503, "Retry-After: 5", body: "busy")] }
            let crowd = proxy.crowd(100, get: "/busy")
            try proxy.joined(100)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 503 && $0.text == "busy" })
            #expect(origin.count("/busy") <= 2)
        }
    }

    @Test func `a hundred clients share one failed connection`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/gone") { _ in [.gate(gate), .close] }
            let crowd = proxy.crowd(100, get: "/gone")
            try proxy.joined(100)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 502 && $0["proxy-status"] != nil })
            #expect(origin.count("/gone") <= 2)
        }
    }

    @Test(arguments: [true, false])
    func `the request of each client is sent where errors are not shared, all at the same time`(_ answers: Bool) throws
    {
        try scenario(.other(section: "coalescing", key: "share-errors", value: "false")) { origin, proxy in
            let (first, others) = (Gate(), Gate())
            origin.on("/x") { request in
                [.gate(request.number == 1 ? first : others)] + (answers ? [.answer(503, body: "busy")] : [.close])
            }
            let crowd = proxy.crowd(5, get: "/x")
            try proxy.joined(5)
            first.open()
            try eventually("the four others ask at the same time") { origin.count("/x") == 5 }
            others.open()
            #expect(crowd.finished().allSatisfy { $0.status == (answers ? 503 : 502) })
            #expect(origin.count("/x") == 5)
        }
    }

    @Test func `an error is not stored`() throws {
        try scenario { origin, proxy in
            origin.on("/once") { $0.number == 1 ? [.answer(500, body: "oops")] : [.answer(200, body: "fine")] }
            let answers = try [proxy.get("/once"), proxy.get("/once")]
            #expect(answers.map(\.text) == ["oops", "fine"])
        }
    }

    @Test(
        arguments: [
            (200, 50, nil), (201, 0, "There are too many field lines. A response may have 200."),
            (200, 51, "There are too many field lines. Trailers may have 50."),
        ] as [(Int, Int, String?)])
    func `a response with too many field lines is reported with the limit`(
        _ lines: Int, _ trailers: Int, mistake: String?
    ) throws {
        try scenario { origin, proxy in
            @Sendable func fields(_ count: Int) -> String { (0..<count).map { "X-\($0): 1\r\n" }.joined() }
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\(fields(lines - 1))\r\n"
            origin.on("/x") { _ in [.raw("\(head)2\r\nhi\r\n0\r\n\(fields(trailers))\r\n")] }
            let answer = proxy.crowd(1, get: "/x").finished()[0]
            if let mistake {
                #expect(answer.status == 502 || !answer.isClean)
                try eventually("it is told") { proxy.diagnostics.contains(mistake) }
            } else {
                #expect(answer.status == 200 && answer.text == "hi" && answer.isClean)
            }
        }
    }

    private static let ok = "HTTP/1.1 200 OK\r\n"

    @Test(
        arguments: [
            ("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", "bare-line-feed", "A line ends with LF instead of CR LF."),
            ("\(ok)X: y\nContent-Length: 2\r\n\r\nhi", "bare-line-feed", "A line ends with LF instead of CR LF."),
            (
                "SMTP ready\r\n\r\n", "malformed-status-line",
                "The status line is not a version, a three-digit code and a phrase."
            ),
            (
                "HTTP/1.1 2x0 OK\r\n\r\n", "malformed-status-line",
                "The status line is not a version, a three-digit code and a phrase."
            ),
            ("HTTP/2.0 200 OK\r\n\r\n", "version-not-supported", "Only HTTP/1.0 and HTTP/1.1 are supported."),
            (
                "\(ok)Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", "content-length-repeated",
                "There is more than one Content-Length."
            ),
            (
                "\(ok)Content-Length: -1\r\n\r\n", "content-length-invalid",
                "The Content-Length field is not one decimal number in range."
            ),
            (
                "\(ok): 1\r\nContent-Length: 0\r\n\r\n", "field-name-invalid",
                "A field name is missing or not a token."
            ),
            (
                "\(ok)Name : 1\r\n\r\n", "space-before-colon",
                "There is white space between a field name and its colon."
            ),
            ("\(ok)A: b\r\n c\r\n\r\n", "folded-line", "A field line starts with white space."),
            ("\(ok)A: b\0c\r\n\r\n", "field-value-invalid", "A field value contains a control character."),
            (
                "\(ok)Connection: te\(String(repeating: ",te", count: 64))\r\nContent-Length: 0\r\n\r\n",
                "too-many-connection-options", "The Connection field has too many members, or is too long."
            ),
            (
                "\(ok)Transfer-Encoding: gzip, chunked\r\n\r\n", "transfer-coding-unknown",
                "The only supported transfer coding is chunked."
            ),
            (
                "\(ok)Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi",
                "content-length-with-transfer-encoding",
                "Content-Length and Transfer-Encoding must not both be present."
            ),
            (
                "HTTP/1.1 304 Not Modified\r\n\r\n", "unasked-304", "A 304 answers a request without conditions."
            ),
            (
                "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "unasked-101",
                "A 101 answers a request that did not ask for another protocol."
            ),
            (
                String(repeating: "HTTP/1.1 103 Early\r\n\r\n", count: 65), "too-many-interim-responses",
                "There are too many interim responses."
            ),
        ] as [(String, String, String)])
    func `a malformed response gives 502, with the reason in the fields, the page and the log`(
        text: String, name: String, sentence: String
    ) throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/odd") { _ in [.raw(text), .close] }
            let answer = try proxy.get("/odd")
            #expect(answer.status == 502)
            #expect(answer["proxy-status"] == #"coalesced; error=http_protocol_error; details="\#(sentence)""#)
            #expect(answer["cache-status"]?.hasSuffix("detail=\(name)") == true)
            #expect(answer.text.hasSuffix("\n\(sentence)\n"))
            try eventually("it is in the log") { try !proxy.accessLog.isEmpty }
            let line = try proxy.accessLog[0]
            #expect(line["detail"]?.string == name && line["clipped"] == nil)
            #expect(proxy.diagnostics.contains(sentence))
        }
    }

    @Test(arguments: [
        ("nonsense\r\n", "chunk-size-invalid"), ("2\r\nhi!!", "chunk-end-missing"),
        ("fffffffffffffffff\r\n", "chunk-size-too-large"), ("2\nhi\r\n", "chunk-size-invalid"),
        ("0\r\nA b\r\n\r\n", "space-before-colon"), ("0\r\nA: b\n\r\n", "bare-line-feed"),
    ])
    func `a body that breaks a rule after the head is logged with that rule`(text: String, name: String)
        throws
    {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/odd") { _ in
                [
                    .head(200, "Transfer-Encoding: chunked"), .chunk("good"), .wait(.milliseconds(100)), .raw(text),
                    .close,
                ]
            }
            #expect(try !proxy.get("/odd").isClean)
            try eventually("it is in the log") { try !proxy.accessLog.isEmpty }
            let line = try proxy.accessLog[0]
            #expect(line["detail"]?.string == name && line["aborted"] == .bool(true))
        }
    }

    @Test func `an origin that closes before its response is distinguished from a silent one`() throws {
        try scenario(.firstByteTimeout(.milliseconds(300))) { origin, proxy in
            origin.on("/close") { _ in [.close] }
            origin.on("/silent") { _ in [.silence] }
            let closed = try proxy.send("POST", "/close")
            #expect(
                closed["proxy-status"]?.hasSuffix(#"details="The connection was closed before a response.""#) == true)
            let silent = try proxy.send("POST", "/silent")
            #expect(
                silent["proxy-status"]?.hasSuffix(
                    #"details="The head was not complete within the first-byte-timeout.""#) == true)
        }
    }
}
