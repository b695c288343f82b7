import Testing

/// Trailers went past all that looks at a head (RFC 9110 §6.5.1).
@Suite(.scenario) struct TrailerTests {
    private let asking = ["TE: trailers", "Connection: TE"]

    @Test func `a trailer that may not be shared as a field is not shared`() throws {
        try scenario { origin, proxy in
            origin.on("/t") { _ in
                [
                    .head(
                        200, "Cache-Control: max-age=60, private=\"x-user, set-cookie\"", "Connection: etag",
                        "Transfer-Encoding: chunked"), .chunk("body"),
                    .lastChunk(
                        "X-User: a", "X-Sum: 42", "Set-Cookie: s=1", "Proxy-Authenticate: Basic",
                        "WWW-Authenticate: Basic", "Cache-Control: no-store",
                        "Content-Length: 9", "Vary: *", "Connection: close", "ETag: \"a\"", "X-Last: 1"),
                ]
            }
            let answers = try (1...2).map { _ in try proxy.get("/t", asking[0], asking[1]) }
            #expect(origin.count("/t") == 1)
            for answer in answers {
                #expect(answer.text == "body" && answer.isClean)
                #expect(answer.body.trailers == ["X-Sum: 42", "X-Last: 1"])
            }
        }
    }

    @Test func `trailers that Connection may have named are not forwarded`() throws {
        try scenario { origin, proxy in
            origin.on("/t") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Connection: x-hop", "Transfer-Encoding: chunked"),
                    .chunk("body"), .lastChunk("X-Hop: 1", "X-Sum: 42"),
                ]
            }
            let answer = try proxy.get("/t", asking[0], asking[1])
            #expect(answer.text == "body" && answer.isClean && answer.body.trailers.isEmpty)
        }
    }

    @Test func `request trailers about host, forwarding or user are not forwarded`() throws {
        try scenario(.other(section: "forwarding", key: "odd-field-names", value: "true")) { origin, proxy in
            origin.on("/up") { _ in [.requestBody, .answer(200)] }
            let client = try proxy.connect()
            let trailers = [
                "X-Forwarded-Host: evil", "X_Forwarded_Proto: https", "Host: evil", "Forwarded: host=evil",
                "Authorization: Basic eA==", "Cookie: a=1",
                "Transfer-Encoding: gzip", "X-Sum: 42", "Content_Length: 7", "X.Sum: 43",
            ]
            try client.send(
                "POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\(trailers.joined(separator: "\r\n"))\r\n\r\n"
            )
            #expect(try client.answer().status == 200)
            let came = try #require(origin.requests("/up").first).body.trailers
            // HTTP/2 has names in lower case.
            #expect(came.map { $0.lowercased() } == ["x-sum: 42"])
        }
    }
}
