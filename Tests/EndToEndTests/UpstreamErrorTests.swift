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
    func `where errors are not shared everybody tries, and all at the same time`(_ answers: Bool) throws {
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
    func `how many field lines a response may have is told of one with more`(
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

    @Test(arguments: [
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", "SMTP ready\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nBad Name: 1\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: te\(String(repeating: ",te", count: 64))\r\nContent-Length: 0\r\n\r\n",
    ])
    func `a malformed response is 502`(_ text: String) throws {
        try scenario { origin, proxy in
            origin.on("/odd") { _ in [.raw(text), .close] }
            let answer = try proxy.get("/odd")
            #expect(answer.status == 502)
            #expect(answer["proxy-status"]?.contains("coalesced") ?? false)
        }
    }
}
