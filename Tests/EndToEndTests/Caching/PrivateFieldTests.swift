import Testing

/// What `private` and `no-cache` name by field is for the client that asked (RFC 9111 §5.2.2.4, §5.2.2.7), also where a
/// later message brings it.
@Suite(.scenario) struct PrivateFieldTests {
    private let named = "Cache-Control: max-age=10, private=\"x-user\""

    @Test func `a 304 without caching fields gives no client another's private field`() throws {
        try scenario { [named] origin, proxy in
            origin.on("/p") { request in
                let user = "X-User: \(request["cookie"] ?? "")"
                return request["if-none-match"] == nil
                    ? [.answer(200, "ETag: \"a\"", named, "Age: 9", user, body: "page")]
                    : [.answer(304, "ETag: \"a\"", user, "X-Other: 1")]
            }
            try proxy.get("/p", "Cookie: alice")
            let confirmed = try proxy.get("/p", "Cookie: alice", "Cache-Control: no-cache")
            #expect(confirmed.text == "page" && confirmed["x-other"] == "1")
            let other = try proxy.get("/p", "Cookie: bob")
            #expect(other.cacheStatus.contains("hit") && other["x-user"] == nil && other["x-other"] == "1")
        }
    }

    @Test func `a part without caching fields gives no client another's private field`() throws {
        try scenario(.rangeMisses("part")) { [named] origin, proxy in
            origin.on("/p") { request in
                let user = "X-User: \(request["cookie"] ?? "")"
                return request["range"] == "bytes=0-3"
                    ? [.answer(206, "ETag: \"a\"", named, "Content-Range: bytes 0-3/10", user, body: "0123")]
                    : [.answer(206, "ETag: \"a\"", "Content-Range: bytes 4-9/10", user, body: "456789")]
            }
            try proxy.get("/p", "Cookie: alice", "Range: bytes=0-3")
            let rest = try proxy.get("/p", "Cookie: alice", "Range: bytes=4-9")
            #expect(rest.text == "456789")
            let other = try proxy.get("/p", "Cookie: bob")
            #expect(other.text == "0123456789" && other["x-user"] == nil)
        }
    }
}
