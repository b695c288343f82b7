import Testing

/// Fields about the content of one message (RFC 9530 §2, `Content-MD5`) stand only beside that content; those about the
/// representation (`Repr-Digest`, RFC 3230's `Digest`) beside any part of it.
@Suite(.scenario) struct ContentDigestTests {
    private static let letters = "abcdefghijklmnopqrstuvwxyz"
    private static let ofContent = ["content-digest", "content-md5"]
    private static let ofRepresentation = ["repr-digest", "digest"]
    /// What a page says of its content and of itself; `name` tells apart whose it is.
    private static func digests(_ name: String) -> [String] {
        [
            "Content-Digest: sha-256=:\(name):", "Content-MD5: \(name)", "Repr-Digest: sha-256=:page:",
            "Digest: SHA-256=page", "Want-Content-Digest: sha-256=1",
        ]
    }
    private static func answer(_ status: Int, _ fields: [String], _ name: String, body: String = "") -> Step {
        let length = status == 304 ? [] : ["Content-Length: \(body.utf8.count)"]
        return .several([.head(status, fields + digests(name) + length), .payload(Array(body.utf8))])
    }

    @Test(arguments: [26, 60_000])
    func `a part, a 304 and a response without content have no digest of the full content`(_ length: Int) throws {
        try scenario { origin, proxy in
            let body = String(repeating: "a", count: length)
            origin.on("/x") { _ in
                [Self.answer(200, ["Cache-Control: max-age=60", "ETag: \"a\""], "whole", body: body)]
            }
            let first = try proxy.get("/x"), whole = try proxy.get("/x")
            for answer in [first, whole] {
                #expect(answer["content-digest"] == "sha-256=:whole:" && answer["content-md5"] == "whole")
                #expect(Self.ofRepresentation.allSatisfy { answer[$0] != nil })
            }
            // Plain hits, and those that more has to be thought about.
            for wish in ["X: plain", "Cache-Control: max-stale"] {
                let part = try proxy.get("/x", "Range: bytes=0-3", wish)
                let parts = try proxy.get("/x", "Range: bytes=0-0,20-25", "Cache-Control: max-stale", wish)
                let unchanged = try proxy.get("/x", "If-None-Match: \"a\"", wish)
                let none = try proxy.get("/x", "Range: bytes=60000-", wish)
                #expect(
                    [part, parts, unchanged, none].map(\.status) == [206, length == 26 ? 200 : 206, 304, 416]
                        || length == 26)
                for answer in [part, unchanged, none] + (parts.status == 206 ? [parts] : []) {
                    #expect(Self.ofContent.allSatisfy { answer[$0] == nil }, "\(answer.status)")
                }
                #expect(Self.ofRepresentation.allSatisfy { part[$0] != nil && unchanged[$0] != nil })
                #expect(part["want-content-digest"] != nil)
                let head = try proxy.send("HEAD", "/x", wish)
                #expect(head["content-digest"] == nil && head["repr-digest"] != nil && head["content-md5"] == "whole")
            }
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(arguments: ["304", "HEAD"])
    func `a message without content does not update the stored content's digest`(_ how: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                if request.method == "HEAD" {
                    return [
                        .head(
                            200,
                            ["Cache-Control: max-age=60", "ETag: \"a\"", "X-New: 1", "Content-Length: 26"]
                                + Self.digests("none"))
                    ]
                }
                return [
                    request["if-none-match"] == nil
                        ? Self.answer(200, ["Cache-Control: max-age=0", "ETag: \"a\""], "whole", body: Self.letters)
                        : Self.answer(304, ["Cache-Control: max-age=60", "ETag: \"a\"", "X-New: 1"], "none")
                ]
            }
            try proxy.get("/x")
            let second = try proxy.send(how == "304" ? "GET" : "HEAD", "/x")
            #expect(second.status == 200)
            let hit = try proxy.get("/x")
            #expect(hit.cacheStatus.contains("; hit") && hit["x-new"] == "1", "\(hit.cacheStatus)")
            #expect(hit.text == Self.letters)
            #expect(hit["content-digest"] == "sha-256=:whole:" && hit["content-md5"] == "whole")
        }
    }

    @Test func `a response made of parts has the digest of none of them`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                let range =
                    request["range"]?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) } ?? [0, 25]
                let (from, to) = (range[0], range.count > 1 ? range[1] : 25)
                let body = String(Array(Self.letters)[from...to])
                return [
                    Self.answer(
                        206, ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes \(from)-\(to)/26"],
                        "\(from)", body: body)
                ]
            }
            for range in ["0-9", "2-5", "5-14", "15-25"] {
                let part = try proxy.get("/x", "Range: bytes=\(range)")
                #expect(part.status == 206 && Self.ofContent.allSatisfy { part[$0] == nil }, "\(range)")
                #expect(Self.ofRepresentation.allSatisfy { part[$0] != nil })
            }
            let whole = try proxy.get("/x")
            #expect(whole.status == 200 && whole.text == Self.letters && whole.cacheStatus.contains("; hit"))
            #expect(
                Self.ofContent.allSatisfy { whole[$0] == nil } && Self.ofRepresentation.allSatisfy { whole[$0] != nil })
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a completed response has its own digest, and its parts have none`() throws {
        try scenario(.resume(0)) { origin, proxy in
            origin.on("/x") { request in
                request["range"] == nil
                    ? [
                        .head(
                            200,
                            ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Length: 26"] + Self.digests("whole")),
                        .text("abcdefghij"), .close,
                    ]
                    : [
                        Self.answer(
                            206, ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 10-25/26"], "rest",
                            body: String(Self.letters.dropFirst(10)))
                    ]
            }
            #expect(try proxy.get("/x").ending == .cutOff)
            let part = try proxy.get("/x", "Range: bytes=0-3")
            #expect(part.status == 206 && Self.ofContent.allSatisfy { part[$0] == nil })
            let whole = try proxy.get("/x")
            #expect(whole.status == 200 && whole.text == Self.letters)
            #expect(whole["content-digest"] == "sha-256=:whole:" || whole["content-digest"] == nil)
            let hit = try proxy.get("/x")
            #expect(hit.cacheStatus.contains("; hit") && hit.text == Self.letters)
            #expect(hit["content-digest"] != "sha-256=:rest:")
        }
    }

    @Test func `a response that is passed through keeps its digests`() throws {
        try scenario(.other(section: "caching", key: "enabled", value: "false")) { origin, proxy in
            origin.on("/x") { request in
                [
                    request.method == "HEAD"
                        ? .head(200, ["Content-Length: 26"] + Self.digests("none"))
                        : Self.answer(206, ["Content-Range: bytes 0-3/26"], "part", body: "abcd")
                ]
            }
            let part = try proxy.get("/x", "Range: bytes=0-3", "If-Match: \"a\"")
            #expect(part.status == 206 && part["content-digest"] == "sha-256=:part:" && part["content-md5"] == "part")
        }
    }
}
