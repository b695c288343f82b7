import Testing

@Suite(.scenario) struct InterimResponseTests {
    @Test func `103 is forwarded before the final response`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .interim(103, "Link: </a.css>; rel=preload"), .gate(gate),
                    .answer(200, "Cache-Control: no-store", body: "x"),
                ]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            let hints = try client.progress { !$0.interim.isEmpty }.interim[0]
            #expect(hints.status == 103 && hints["link"] == "</a.css>; rel=preload")
            gate.open()
            #expect(try client.answer().text == "x")
        }
    }

    @Test func `a request that joins between an interim response and the head gets both`() throws {
        try scenario { origin, proxy in
            let head = Gate()
            origin.on("/x") { _ in
                [
                    .interim(103, "Link: </a.css>; rel=preload"), .gate(head),
                    .answer(200, "Cache-Control: max-age=60", body: "x"),
                ]
            }
            let leader = try proxy.connect()
            try leader.send(proxy.request("GET", "/x"))
            try leader.progress { !$0.interim.isEmpty }
            let joiner = try proxy.connect()
            try joiner.send(proxy.request("GET", "/x"))
            #expect(try joiner.progress { !$0.interim.isEmpty }.interim.map(\.status) == [103])
            head.open()
            let answers = try [leader.answer(), joiner.answer()]
            #expect(answers.allSatisfy { $0.text == "x" && $0.interim.count == 1 })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a client that gave up waiting gets no more interim responses of that fetch`() throws {
        try scenario(.waitTimeout(.milliseconds(300)), .whenExceeded("pass")) { origin, proxy in
            let (first, second) = (Gate(), Gate())
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .gate(first), .interim(103, "Link: </first.css>; rel=preload"),
                        .answer(200, "Cache-Control: max-age=60", body: "1"),
                    ]
                    : [.gate(second), .answer(200, "Cache-Control: max-age=60", body: "2")]
            }
            let leader = proxy.crowd(1, get: "/x")
            try eventually("the fetch is under way") { origin.count("/x") == 1 }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            try eventually("the other leads the next") { origin.count("/x") == 2 }
            first.open()
            #expect(leader.finished()[0].interim.count == 1)
            second.open()
            let answer = try client.answer()
            #expect(answer.text == "2" && answer.interim.isEmpty)
        }
    }

    @Test(.overHTTP1("it is about HTTP/1.0")) func `an HTTP 1 point 0 client gets no interim response`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.interim(103, "Link: </a.css>; rel=preload"), .answer(200, body: "x")] }
            let client = try proxy.connect()
            try client.send("GET /x HTTP/1.0\r\nHost: a\r\n\r\n")
            let answer = try client.answer()
            #expect(answer.interim.isEmpty && answer.text == "x")
        }
    }

    @Test(arguments: [true, false])
    func `100 goes only to a client that expects it`(isAskedFor: Bool) throws {
        try scenario(.bodyBuffer(0)) { origin, proxy in
            origin.on("/x") { _ in [.interim(100), .interim(103, "Link: </a>"), .requestBody, .answer(200, body: "x")] }
            let client = try proxy.connect()
            try client.send(
                proxy.request("POST", "/x", ["Content-Length: 3"] + (isAskedFor ? ["Expect: 100-continue"] : [])))
            try client.progress { $0.interim.contains { $0.status == 103 } }
            try client.send("abc")
            #expect(try client.answer().interim.map(\.status) == (isAskedFor ? [100, 103] : [103]))
        }
    }

    @Test func `an interim response has no length, whatever the origin sends`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                [
                    .interim(103, "Link: </a.css>; rel=preload", "Content-Length: 5"), .gate(gate),
                    .answer(200, "Cache-Control: max-age=60", body: "x"),
                ]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x"))
            let hints = try client.progress { !$0.interim.isEmpty }.interim[0]
            #expect(hints["content-length"] == nil && hints["link"] != nil)
            gate.open()
            #expect(try client.answer().text == "x")
        }
    }
}
