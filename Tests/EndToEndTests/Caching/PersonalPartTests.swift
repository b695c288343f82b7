import Testing

/// What the origin sends one client of a representation, while parts of it are stored for all: what concerns that
/// client alone reaches it, and changes nothing for the others.
@Suite(.scenario) struct PersonalPartTests {
    private static let letters = "abcdefghijklmnopqrstuvwxyz"
    private static let authorization = "Authorization: Basic eA=="

    /// The range that is asked for, of the alphabet.
    private static func part(_ request: Received, _ fields: String...) -> [Step] {
        let ends = (request["range"] ?? "bytes=0-25").dropFirst("bytes=".count).split(separator: "-").map { Int($0) }
        guard ends.count == 2, let first = ends[0], let last = ends[1] else { return [.answer(400)] }
        let text = String(letters.dropFirst(first).prefix(last - first + 1))
        return [
            .head(206, fields + ["Content-Length: \(text.count)", "Content-Range: bytes \(first)-\(last)/26"]),
            .text(text),
        ]
    }

    @Test func `fields sent to a session are for that session, the bytes are for all`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { Self.part($0, "ETag: \"a\"", "X-User: \($0["cookie"] ?? "none")") }
            try proxy.get("/x", "Range: bytes=0-9")
            let own = try proxy.get("/x", "Range: bytes=5-19", "Cookie: s=1")
            #expect(own.text == "fghijklmnopqrst" && own["x-user"] == "s=1")
            for cookie in ["X-Nothing: 1", "Cookie: s=2"] {
                let other = try proxy.get("/x", "Range: bytes=0-19", cookie, "Cache-Control: max-stale")
                #expect(other.text == "abcdefghijklmnopqrst" && other["x-user"] == "none")
            }
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a part with Set-Cookie serves its client alone`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                let fresh = "Cache-Control: max-age=60"
                return request["range"] == "bytes=10-19"
                    ? Self.part(request, "ETag: \"a\"", fresh, "Set-Cookie: id=1")
                    : Self.part(request, "ETag: \"a\"", fresh)
            }
            try proxy.get("/x", "Range: bytes=0-9")
            let own = try proxy.get("/x", "Range: bytes=5-19")
            #expect(own.text == "fghijklmnopqrst" && own["set-cookie"] == "id=1")
            #expect(!own.cacheStatus.contains("stored"))
            let other = try proxy.get("/x", "Range: bytes=12-15")
            #expect(other.text == "mnop" && origin.count("/x") == 3)
        }
    }

    /// RFC 9111 §5.2.2.7.
    @Test func `a private field of a part goes to its client alone`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") {
                Self.part($0, "ETag: \"a\"", "Cache-Control: max-age=60, private=\"x-user\"", "X-User: 1")
            }
            try proxy.get("/x", "Range: bytes=0-9")
            let own = try proxy.get("/x", "Range: bytes=5-19")
            #expect(own.text == "fghijklmnopqrst" && own["x-user"] == "1")
            let other = try proxy.get("/x", "Range: bytes=12-15")
            #expect(other.text == "mnop" && other["x-user"] == nil && other.cacheStatus.contains("hit"))
        }
    }

    /// RFC 9111 §3.5. What the client with `Authorization` gets: another part, no part, or a whole of its own.
    @Test(arguments: ["other part", "same part, private", "no tag", "416", "whole"])
    func `a response to a client with Authorization leaves the parts for others`(_ what: String) throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                guard request["authorization"] != nil else {
                    return Self.part(request, "ETag: \"a\"", "Cache-Control: max-age=60")
                }
                return switch what {
                case "other part": Self.part(request, "ETag: \"b\"", "Cache-Control: private")
                case "same part, private": Self.part(request, "ETag: \"a\"", "Cache-Control: private")
                case "no tag": Self.part(request, "Cache-Control: no-store")
                case "416": [.answer(416, "Content-Range: bytes */26", "Cache-Control: private")]
                default: [.answer(200, "ETag: \"b\"", "Cache-Control: private", body: Self.letters)]
                }
            }
            try proxy.get("/x", "Range: bytes=0-9")
            let own = try proxy.get("/x", "Range: bytes=5-19", Self.authorization)
            #expect(what == "416" ? own.status == 416 : own.text.contains("fghijklmnopqrst"), "\(own.text)")
            // One at most to find out that what is stored is not for it.
            let asked = origin.count("/x")
            #expect(asked <= 3)
            let other = try proxy.get("/x", "Range: bytes=0-9")
            #expect(other.text == "abcdefghij" && other.cacheStatus.contains("hit"), "\(other.cacheStatus)")
            let more = try proxy.get("/x", "Range: bytes=5-14")
            #expect(more.text == "fghijklmno" && more.cacheStatus.contains("stored"), "\(more.cacheStatus)")
            #expect(origin.count("/x") == asked + 1)
        }
    }

    /// The bytes are those that all get under the same tag.
    @Test func `fields of a part for a client with Authorization go to it alone, even for a public page`()
        throws
    {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                request["authorization"] == nil
                    ? Self.part(request, "ETag: \"a\"", "Cache-Control: public, max-age=60")
                    : Self.part(request, "ETag: \"a\"", "X-User: me")
            }
            try proxy.get("/x", "Range: bytes=0-9")
            let own = try proxy.get("/x", "Range: bytes=5-19", Self.authorization)
            #expect(own.text == "fghijklmnopqrst" && own["x-user"] == "me")
            let other = try proxy.get("/x", "Range: bytes=0-19")
            #expect(other.text == "abcdefghijklmnopqrst" && other["x-user"] == nil, "\(other.cacheStatus)")
            #expect(origin.count("/x") == 2)
        }
    }

    /// Nor does it keep them from sharing what comes.
    @Test func `with storing turned off, a part for one client changes nothing for others`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                request["authorization"] == nil
                    ? Self.part(request, "ETag: \"a\"", "Cache-Control: max-age=60")
                    : Self.part(request, "Cache-Control: private")
            }
            try proxy.get("/x", "Range: bytes=0-9", Self.authorization)
            let other = try proxy.get("/x", "Range: bytes=0-9")
            #expect(other.cacheStatus.contains("stored"), "\(other.cacheStatus)")
        }
    }
}
