import Testing

/// How the harness puts HTTP/1.1 into HTTP/2, and back.
struct FramedTextTests {
    private func lines(_ fields: [FieldLine]) -> [String] {
        fields.map { "\($0.name): \(String(decoding: $0.value, as: UTF8.self))" }
    }

    @Test(arguments: [1, 7, 1000]) func `requests are found in any pieces`(_ size: Int) throws {
        let text = """
            GET /a HTTP/1.1\r\nHost: b\r\nX-One: 1 \r\nCookie: c=1; d=2\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\n\r\n\
            POST /c HTTP/1.1\r\nTE: gzip, trailers\r\nTransfer-Encoding: chunked\r\n\r\n\
            3\r\nabc\r\n0\r\nX-Sum: 42\r\nUpgrade: x\r\n\r\n
            """
        let bytes = Array(text.utf8)
        var splitter = RequestSplitter()
        var (requests, content, trailers): ([FramedRequest], [UInt8], [FieldLine]) = ([], [], [])
        for start in stride(from: 0, to: bytes.count, by: size) {
            let events = splitter.read(bytes[start..<min(start + size, bytes.count)])
            for event in try #require(events) {
                switch event {
                case .head(let request): requests.append(request)
                case .content(let bytes): content += bytes
                case .end(let fields): trailers = fields
                }
            }
        }
        try #require(requests.count == 2)
        #expect(requests[0].authority == "b" && requests[0].endsConnection && !requests[0].hasContent)
        #expect(lines(requests[0].fields) == ["x-one: 1", "cookie: c=1", "cookie: d=2"])
        #expect(requests[1].authority == nil && !requests[1].endsConnection && requests[1].hasContent)
        #expect(lines(requests[1].fields) == ["te: trailers"])
        #expect(content == Array("abc".utf8) && lines(trailers) == ["x-sum: 42"])
        #expect(!splitter.isAmidRequest)
    }

    @Test(arguments: [
        "nonsense\r\n\r\n", "GET / HTTP/1.0\r\n\r\n", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n",
    ])
    func `what HTTP/2 cannot say is no request`(_ text: String) {
        var splitter = RequestSplitter()
        let events = splitter.read(Array(text.utf8)[...])
        #expect(events == nil)
    }

    private func text(of response: inout FramedResponse) -> (text: String, content: Int) {
        var buffer = [UInt8](repeating: 0, count: 1000)
        let taken = response.take(into: &buffer, 0..<buffer.count)
        return (String(decoding: buffer[..<taken.all], as: UTF8.self), taken.content)
    }

    private func field(_ name: String, _ value: String) -> FieldLine { FieldLine(name: name, value: Array(value.utf8)) }

    @Test func `a response without a length comes in chunks, with its trailers`() {
        var response = FramedResponse(to: FramedRequest(method: "GET", target: "/"))
        response.add([field(":status", "103"), field("link", "a")])
        response.add([field(":status", "200"), field("x-one", "1")])
        response.add(content: Array("hello".utf8))
        #expect(!response.isOver)
        response.add([field("x-sum", "42")])
        response.end()
        let (text, content) = text(of: &response)
        #expect(
            text == """
                HTTP/1.1 103 \r\nLink: a\r\n\r\nHTTP/1.1 200 \r\nX-One: 1\r\nTransfer-Encoding: chunked\r\n\r\n\
                5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n
                """)
        #expect(content == 5 && response.isOver)
    }

    @Test(arguments: [("HEAD", "200"), ("GET", "304"), ("GET", "204")])
    func `a response without content is its head`(_ method: String, _ status: String) {
        var response = FramedResponse(to: FramedRequest(method: method, target: "/", endsConnection: true))
        response.add([field(":status", status)])
        response.end()
        let (text, _) = text(of: &response)
        #expect(text == "HTTP/1.1 \(status) \r\nConnection: close\r\n\r\n" && response.isOver)
    }

    @Test func `a response whose stream closes early is cut`() {
        var response = FramedResponse(to: FramedRequest(method: "GET", target: "/"))
        response.add([field(":status", "200"), field("content-length", "10")])
        response.add(content: Array("half".utf8))
        response.close()
        #expect(!response.isCut, "not before that is read")
        let (text, _) = text(of: &response)
        #expect(text == "HTTP/1.1 200 \r\nContent-Length: 10\r\n\r\nhalf" && response.isCut && !response.isOver)
    }
}
