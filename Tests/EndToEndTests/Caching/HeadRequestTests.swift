import Testing

@Suite(.scenario) struct HeadRequestTests {
    @Test(arguments: [true, false])
    func `HEAD of a page of unknown length has no Content-Length`(_ isChunked: Bool) throws {
        try scenario { origin, proxy in
            let framing = isChunked ? "Transfer-Encoding: chunked\r\n" : ""
            origin.on("/x") { request in
                request.method == "HEAD"
                    ? [.raw("HTTP/1.1 200 OK\r\n\(framing)ETag: \"a\"\r\nCache-Control: max-age=60\r\n\r\n")]
                    : [.answer(200, "Cache-Control: max-age=60", "ETag: \"a\"", body: "hello")]
            }
            let answer = try proxy.send("HEAD", "/x")
            #expect(answer.status == 200 && answer["content-length"] == nil)
            #expect(try proxy.get("/x")["content-length"] == "5")
            #expect(try proxy.send("HEAD", "/x")["content-length"] == "5")
        }
    }

    @Test func `HEAD is answered from a stored GET`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", "X: 1", body: "hello")] }
            try proxy.get("/x")
            let head = try proxy.send("HEAD", "/x")
            #expect(head.status == 200 && head["content-length"] == "5" && head["x"] == "1" && head.body.length == 0)
            #expect(head.cacheStatus.contains("hit"))
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a HEAD response has a head and no body, and the connection is reused`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "hello")] }
            let client = try proxy.connect()
            try client.send(proxy.request("HEAD", "/x") + proxy.request("GET", "/x"))
            let head = try client.answer(to: "HEAD")
            #expect(head.status == 200 && head["content-length"] == "5")
            #expect(try client.answer().text == "hello")
        }
    }

    @Test func `a HEAD response is not stored for GET`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            try proxy.send("HEAD", "/x")
            #expect(try proxy.get("/x").text == "hello")
        }
    }

    @Test func `a refusal of HEAD does not affect GET`() throws {
        try scenario { origin, proxy in
            let page = Gate()
            origin.on("/x") { request in
                request.method == "HEAD"
                    ? [.answer(403)] : [.gate(page), .answer(200, "Cache-Control: max-age=60", body: "hello")]
            }
            try proxy.send("HEAD", "/x")
            let crowd = proxy.crowd(5, get: "/x")
            try proxy.joined(6)
            page.open()
            #expect(crowd.finished().allSatisfy { $0.text == "hello" })
            #expect(origin.count("/x") == 2)
        }
    }

    /// The validators of the page as it was stored, and as HEAD tells of the next one. The length is the same.
    @Test(arguments: [
        ("", ""), ("ETag: \"1\"", ""), ("ETag: 1", "ETag: 2"),
        ("Last-Modified: Sun, 06-Nov-21", "Last-Modified: Sun, 06-Nov-22"),
    ])
    func `a HEAD response that does not confirm the page causes a new fetch`(
        _ stored: String, _ told: String
    ) throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                let validator = request.method == "HEAD" ? told : stored
                let fields =
                    ["Cache-Control: max-age=60", "Content-Length: 1"] + (validator.isEmpty ? [] : [validator])
                return [.head(200, fields), .text("\(request.number)")]
            }
            try proxy.get("/x")
            try proxy.send("HEAD", "/x", "Cache-Control: no-cache")
            let answer = try proxy.get("/x")
            #expect(answer.text == "3" && !answer.cacheStatus.contains("hit"))
        }
    }

    @Test func `a HEAD answered from the store leaves no bytes on the connection`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            try proxy.get("/x")
            let client = try proxy.connect()
            try client.send(proxy.request("HEAD", "/x") + proxy.request("GET", "/x"))
            let head = try client.answer(to: "HEAD")
            #expect(head.status == 200 && head["content-length"] == "5")
            let next = try client.answer()
            #expect(next.head?.startLine.hasPrefix("HTTP/1.1 200") == true && next.text == "hello")
            #expect(origin.count("/x") == 1)
        }
    }
}
