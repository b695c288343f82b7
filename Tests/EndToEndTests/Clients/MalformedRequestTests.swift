import Testing

/// Bad input gets a clear 4xx and a closed connection, and the origin never hears of it.
@Suite(.scenario) struct MalformedRequestTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let what: String
        let request: String
        var status = 400
        var testDescription: String { what }
    }

    static let cases: [Case] = [
        Case(what: "no sense at all", request: "nonsense\r\n\r\n"),
        Case(what: "no version", request: "GET /\r\n\r\n"),
        Case(what: "a bare line feed", request: "GET / HTTP/1.1\nHost: a\n\n"),
        Case(what: "a bare line feed among the fields", request: "GET / HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n"),
        Case(what: "a bare carriage return in a value", request: "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r2\r\n\r\n"),
        Case(what: "a NUL in a value", request: "GET / HTTP/1.1\r\nHost: a\r\nX: 1\u{0}2\r\n\r\n"),
        Case(what: "space before the colon", request: "GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n"),
        Case(what: "a folded line", request: "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n"),
        Case(what: "space before the first field", request: "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
        Case(what: "a field without a colon", request: "GET / HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n"),
        Case(what: "an empty field name", request: "GET / HTTP/1.1\r\nHost: a\r\n: 1\r\n\r\n"),
        Case(what: "no Host", request: "GET / HTTP/1.1\r\n\r\n"),
        Case(what: "two Hosts", request: "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        Case(what: "a malformed Host", request: "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
        Case(what: "a space in the target", request: "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
        Case(what: "a malformed method", request: "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
        Case(
            what: "a length and a coding",
            request: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Case(
            what: "two lengths that differ",
            request: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        Case(
            what: "a list of lengths that differ",
            request: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\nhello!"),
        Case(what: "a signed length", request: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello"),
        Case(what: "a hexadecimal length", request: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello"),
        Case(
            what: "an absurd length",
            request: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        Case(
            what: "chunked not last",
            request: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
        Case(
            what: "chunked in HTTP/1.0",
            request: "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Case(
            what: "an unknown coding",
            request: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: rot13, chunked\r\n\r\n0\r\n\r\n", status: 501),
        Case(what: "a version to come", request: "GET / HTTP/2.0\r\nHost: a\r\n\r\n", status: 505),
        Case(
            what: "a target too long",
            request: "GET /\(String(repeating: "a", count: 20_000)) HTTP/1.1\r\nHost: a\r\n\r\n", status: 414),
        Case(
            what: "a field too large",
            request: "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 100_000))\r\n\r\n", status: 431),
        Case(
            what: "too many connection options",
            request: "GET / HTTP/1.1\r\nHost: a\r\nConnection: te\(String(repeating: ",te", count: 64))\r\n\r\n"),
        Case(
            what: "too many fields",
            request: "GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: 1\r\n", count: 1_000))\r\n", status: 431),
    ]

    @Test(.overHTTP1("the text is malformed"))
    func `each malformed request is refused, closed and logged once, and never reaches the origin`() throws {
        try scenario(.accessLog) { origin, proxy in
            for (index, malformed) in Self.cases.enumerated() {
                let client = try proxy.connect()
                try client.send(malformed.request)
                let answer = try client.answer(within: .seconds(5))
                #expect(answer.status == malformed.status, "\(malformed.what)")
                #expect(answer.isClean && !answer.text.isEmpty, "\(malformed.what): says what was wrong")
                #expect(answer["connection"]?.lowercased() == "close", "\(malformed.what)")
                #expect(client.isClosed(), "\(malformed.what)")
                try eventually("a line for \(malformed.what)") { try proxy.accessLog.count > index }
                #expect(try proxy.accessLog.count == index + 1, "\(malformed.what): one line")
                #expect(try proxy.accessLog[index]["status"]?.number == Double(malformed.status), "\(malformed.what)")
            }
            #expect(origin.total == 0)
            // Anybody can cause any amount of it.
            #expect(proxy.diagnostics.contains("info: malformed request from "))
            #expect(!proxy.diagnostics.contains("warning: "))
        }
    }

    @Test(
        .overHTTP1("HTTP/2 has no chunks"),
        arguments: [
            "5\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "x\r\nhello\r\n0\r\n\r\n", "-1\r\n\r\n",
            "5 \r\nhello\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n",
        ])
    func `a malformed chunk is refused`(_ body: String) throws {
        try scenario { origin, proxy in
            origin.on("/c") { _ in [.requestBody, .answer(200)] }
            let client = try proxy.connect()
            try client.send("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
            #expect(try client.answer(within: .seconds(5)).status == 400)
            #expect(client.isClosed())
            #expect(origin.requests("/c").allSatisfy { !$0.isWhole }, "the origin must not take it for whole")
        }
    }

    @Test(.overHTTP1("the text is malformed"))
    func `the response to a refused HEAD has no content, however malformed the request`() throws {
        try scenario(.headTimeout(.milliseconds(500))) { origin, proxy in
            for (rest, status) in [
                ("/a b HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("/ HTTP/1.1\r\n\r\n", 400),
                ("/ HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n", 400), ("/ HTTP/2.0\r\nHost: a\r\n\r\n", 505),
                ("/ HTTP/1.1\r\nHo", 408),
            ] {
                let client = try proxy.connect()
                try client.send("\r\nHEAD " + rest)
                let answer = try client.answer(to: "HEAD", within: .seconds(5))
                #expect(answer.status == status)
                #expect(client.isClosed(), "nothing comes behind the head: \(rest)")
            }
            #expect(origin.total == 0)
        }
    }

    @Test(.overHTTP1("half a head is no frame")) func `a slow head gets 408, and its connection is closed`() throws {
        try scenario(.headTimeout(.milliseconds(500))) { origin, proxy in
            let client = try proxy.connect()
            try client.send("GET / HTTP/1.1\r\nHo")
            let answer = try client.answer(within: .seconds(5))
            #expect(answer.status == 408)
            #expect(answer.took < .milliseconds(500) + aStall)
            #expect(client.isClosed())
            #expect(origin.total == 0)
            #expect(proxy.diagnostics.contains(#/ info: request from \S+ did not arrive in time/#))
        }
    }

    @Test(.overHTTP1("half a head is no frame")) func `a head that arrives byte by byte is slow too`() throws {
        try scenario(.headTimeout(.milliseconds(500))) { _, proxy in
            let client = try proxy.connect()
            let begun = Instant.now
            try client.send("GET / HTTP/1.1\r\n")
            while .now - begun < .seconds(8), !client.isEndedByPeer {
                do { try client.send("X: 1\r\n") } catch is System.Failure { break }
                if let answer = try? client.progress(within: .milliseconds(50), until: { $0.status == 408 }) {
                    #expect(answer.status == 408)
                    break
                }
            }
            #expect(.now - begun < .milliseconds(500) + aStall)
        }
    }

    @Test func `an idle connection is closed after idle-timeout`() throws {
        try scenario(.idleTimeout(.milliseconds(300))) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            #expect(try client.answer().status == 200)
            #expect(client.isClosed())
        }
    }

    @Test(
        arguments: [
            (
                .other(section: "clients", key: "max-target-length", value: "200"),
                "GET /\(String(repeating: "a", count: 200)) HTTP/1.1\r\nHost: a\r\n\r\n", 414
            ),
            (
                .other(section: "clients", key: "max-field-lines", value: "5"),
                "GET /x HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: 1\r\n", count: 5))\r\n", 431
            ),
            (
                .maxHeadSize(1024), "GET /x HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 1024))\r\n\r\n",
                431
            ),
        ] as [(Setting, String, Int)])
    func `the limits of a request are the configured ones`(limit: Setting, request: String, status: Int) throws {
        for (setting, expected) in [(.workers(1), 200), (limit, status)] as [(Setting, Int)] {
            try scenario(setting) { origin, proxy in
                origin.on("*") { _ in [.answer(200)] }
                let client = try proxy.connect()
                try client.send(request)
                let answer = try client.answer()
                #expect(answer.status == expected)
            }
        }
    }

    @Test func `a request that arrives byte by byte is served like any other`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.requestBody, .answer(200, body: "x")] }
            let client = try proxy.connect()
            let text = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
            for byte in text.utf8 { try client.send([byte]) }
            #expect(try client.answer().text == "x")
            #expect(origin.requests("/x")[0].body.text == "ab")
        }
    }
}
