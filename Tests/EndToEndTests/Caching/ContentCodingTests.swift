import Testing

/// What is encoded (`Content-Encoding`) and does not say `Vary: Accept-Encoding`, as nginx sends it without
/// `gzip_vary on`: it is for those who accept its coding, stored or on its way.
@Suite(.scenario) struct ContentCodingTests {
    private static let gzip = "Accept-Encoding: gzip"
    private static let reload = "Cache-Control: no-cache"

    /// An origin that compresses for whom its `Accept-Encoding` names gzip, and says nothing of it.
    /// - Parameters:
    ///   - fields: of all its responses.
    ///   - before: what it waits for before each head.
    private static func page(_ fields: String..., before: Step...) -> ScriptedOrigin.Handler {
        { request in
            if let tags = request["if-none-match"], tags.contains("\"x\"") {
                return before + [.answer(304, "ETag: \"x\"")]
            }
            return before + [
                request["accept-encoding"]?.contains("gzip") == true
                    ? .several([
                        .head(200, fields + ["Content-Encoding: gzip", "ETag: W/\"x\"", "Content-Length: 5"]),
                        .text("small"),
                    ])
                    : .several([.head(200, fields + ["ETag: \"x\"", "Content-Length: 9"]), .text("the whole")])
            ]
        }
    }

    private static let fresh = "Cache-Control: max-age=600"

    @Test func `a client without gzip gets the plain page although the compressed one is stored`() throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page(Self.fresh))
            #expect(try proxy.get("/x", Self.gzip).text == "small")
            let answer = try proxy.get("/x")
            #expect(answer.text == "the whole" && answer["content-encoding"] == nil)
            #expect(answer.cacheStatus.contains("fwd=vary-miss"))
            // Neither takes the other's place.
            let hits = try [proxy.get("/x", Self.gzip), proxy.get("/x"), proxy.get("/x", Self.gzip)]
            #expect(hits.map(\.text) == ["small", "the whole", "small"])
            #expect(hits.allSatisfy { $0.cacheStatus.contains("hit") })
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `an uncompressed response serves every client`() throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page(Self.fresh))
            try proxy.get("/x")
            #expect(try proxy.get("/x", Self.gzip).text == "the whole")
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(arguments: ["gzip, br", "br;q=1, GZIP;q=0.5", "x-gzip", "*", "deflate, *;q=0.1", "br, gzip;q=0.001"])
    func `a client that accepts the coding gets the stored compressed response`(_ accepted: String) throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page(Self.fresh))
            try proxy.get("/x", Self.gzip)
            let hit = try proxy.get("/x", "Accept-Encoding: \(accepted)")
            #expect(hit.text == "small" && hit.cacheStatus.contains("hit"))
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(arguments: ["", "identity", "br", "gzip;q=0", "*;q=0", "gzip;q=0.000, *", "gzipped", "*, gzip;q=0"])
    func `clients that do not accept the coding share one fetch`(_ refusing: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, Self.fresh, "Content-Encoding: gzip", body: "small")]
                    : [.answer(200, Self.fresh, body: "the whole")]
            }
            try proxy.get("/x", Self.gzip)
            let field = "Accept-Encoding: \(refusing)"
            let answers = try [proxy.get("/x", field), proxy.get("/x", field)]
            #expect(answers.map(\.text) == ["the whole", "the whole"])
            #expect(try proxy.get("/x", Self.gzip).text == "small")
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a client must accept every coding of a response, and identity is no coding`() throws {
        try scenario { origin, proxy in
            origin.on("/two") { [.answer(200, Self.fresh, "Content-Encoding: gzip, BR", body: "\($0.number)")] }
            try proxy.get("/two", "Accept-Encoding: gzip, br")
            #expect(try proxy.get("/two", "Accept-Encoding: br, zstd, gzip").text == "1")
            #expect(try proxy.get("/two", Self.gzip).text == "2")
            origin.on("/none") { [.answer(200, Self.fresh, "Content-Encoding: identity", body: "\($0.number)")] }
            let answers = try [proxy.get("/none", Self.gzip), proxy.get("/none")]
            #expect(answers.map(\.text) == ["1", "1"])
        }
    }

    /// A file with `Content-Encoding`, an origin that ignores `Accept-Encoding`, a coding that nobody knows.
    @Test(arguments: ["gzip", "x-gzip", "utf-8", "a, b, c, d, e, f"])
    func `an origin that encodes for every client is asked once by each kind of client`(_ coding: String) throws {
        try scenario { origin, proxy in
            origin.on("/x") { [.answer(200, Self.fresh, "Content-Encoding: \(coding)", body: "\($0.number)")] }
            let clients = [[Self.gzip], [], ["Accept-Encoding: identity"]]
            for _ in 0..<4 {
                for client in clients {
                    let answer = try proxy.send("GET", "/x", client)
                    #expect(answer["content-encoding"] == coding && !answer.text.isEmpty)
                }
            }
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a response compressed in spite of a refusal serves no other client that refuses gzip`() throws {
        try scenario { origin, proxy in
            // As origins that look for the word.
            origin.on("/x", Self.page(Self.fresh))
            let fields = [["Accept-Encoding: gzip;q=0"], ["Accept-Encoding: identity"], []]
            let texts = try fields.map { try proxy.send("GET", "/x", $0).text }
            #expect(texts == ["small", "the whole", "the whole"])
        }
    }

    // MARK: - In flight

    @Test func `waiters that do not accept the coding are released together`() throws {
        try scenario { origin, proxy in
            let (head, others, body) = (Gate(), Gate(), Gate())
            origin.on("/x") { request in
                request["accept-encoding"]?.contains("gzip") == true
                    ? [
                        .gate(head), .head(200, Self.fresh, "Content-Encoding: gzip", "Content-Length: 5"),
                        .text("sm"), .gate(body), .text("all"),
                    ]
                    : [.gate(others), .answer(200, Self.fresh, body: "the whole")]
            }
            let leader = proxy.crowd(1, get: "/x", Self.gzip)
            try eventually("the leader has asked") { origin.count("/x") == 1 }
            let accepting = proxy.crowd(10, get: "/x", "Accept-Encoding: br, gzip")
            let refusing = proxy.crowd(10, get: "/x")
            try proxy.joined(21)
            head.open()
            try eventually("those who do not accept gzip ask together") { origin.count("/x") == 2 }
            // Who comes now finds the fetch that is for it.
            let late = proxy.crowd(5, get: "/x"), lateGzip = proxy.crowd(5, get: "/x", "Accept-Encoding: gzip, zstd")
            try eventually("late ones read along") { lateGzip.answers.allSatisfy { $0.body.length == 2 } }
            try late.gathered()
            others.open()
            body.open()
            #expect((leader.finished() + accepting.finished() + lateGzip.finished()).allSatisfy { $0.text == "small" })
            #expect((refusing.finished() + late.finished()).allSatisfy { $0.text == "the whole" })
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `once a URL is known to be compressed, both kinds of clients are fetched for in parallel`() throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page("Cache-Control: max-age=10", "Age: 20"))
            try proxy.get("/x", Self.gzip)
            let next = Gate()
            origin.on("/x", Self.page(Self.fresh, before: .gate(next)))
            let crowds = [proxy.crowd(5, get: "/x", Self.gzip), proxy.crowd(5, get: "/x")]
            try eventually("neither waits for the other's head") { origin.count("/x") == 3 }
            next.open()
            #expect(crowds.flatMap { $0.finished() }.allSatisfy { $0.status == 200 })
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a HEAD is matched by coding too, and keeps both variants`() throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page(Self.fresh))
            try proxy.get("/x", Self.gzip)
            try proxy.get("/x")
            // nginx does not compress for HEAD.
            origin.on("/x") { _ in [.answer(200, Self.fresh, "ETag: \"x\"", body: "the whole")] }
            try proxy.send("HEAD", "/x", Self.gzip, Self.reload)
            let head = try proxy.send("HEAD", "/x", Self.gzip)
            #expect(head["content-encoding"] == "gzip")
            let hits = try [proxy.get("/x", Self.gzip), proxy.get("/x")]
            #expect(hits.map(\.text) == ["small", "the whole"])
            #expect(hits.allSatisfy { $0.cacheStatus.contains("hit") })
        }
    }

    // MARK: - Afterwards

    @Test func `a stale response is validated for each kind of client separately`() throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page(Self.fresh))
            for client in [[Self.gzip], []] { try proxy.send("GET", "/x", client) }
            let reloads = try [[Self.gzip, Self.reload], [Self.reload]].map { try proxy.send("GET", "/x", $0) }
            #expect(reloads.map(\.text) == ["small", "the whole"])
            #expect(origin.requests("/x").map { $0["if-none-match"] } == [nil, nil, "W/\"x\"", "\"x\""])
            let hits = try [proxy.get("/x", Self.gzip), proxy.get("/x")]
            #expect(hits.map(\.text) == ["small", "the whole"])
            #expect(hits[0]["etag"] == "W/\"x\"" && hits[1]["etag"] == "\"x\"")
            #expect(hits.allSatisfy { $0.cacheStatus.contains("hit") })
            #expect(origin.count("/x") == 4)
        }
    }

    enum Change: CaseIterable, Sendable {
        /// Compresses no more.
        case plain
        /// Says `Vary` from now on.
        case varies
        /// Another coding.
        case otherCoding
    }

    @Test(arguments: Change.allCases)
    func `an origin that changes its coding is asked once`(_ change: Change) throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page("Cache-Control: max-age=10", "Age: 20"))
            try proxy.get("/x", "Accept-Encoding: gzip, br")
            try proxy.get("/x")
            let asked = origin.count("/x")
            origin.on("/x") { _ in
                switch change {
                case .plain: [.answer(200, Self.fresh, "ETag: \"y\"", body: "new")]
                case .varies:
                    [
                        .answer(
                            200, Self.fresh, "Vary: Accept-Encoding", "Content-Encoding: gzip", "ETag: W/\"y\"",
                            body: "new")
                    ]
                case .otherCoding: [.answer(200, Self.fresh, "Content-Encoding: br", "ETag: W/\"y\"", body: "new")]
                }
            }
            for _ in 0..<3 { #expect(try proxy.get("/x", "Accept-Encoding: gzip, br").text == "new") }
            #expect(origin.count("/x") == asked + 1)
        }
    }

    @Test func `the coding counts in addition to other fields in Vary`() throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page(Self.fresh, "Vary: Origin"))
            let one = "Origin: http://a.example"
            #expect(try proxy.get("/x", Self.gzip, one).text == "small")
            #expect(try proxy.get("/x", one).text == "the whole")
            #expect(try proxy.get("/x", Self.gzip, "Origin: http://b.example").text == "small")
            let hits = try [proxy.get("/x", Self.gzip, one), proxy.get("/x", one)]
            #expect(hits.map(\.text) == ["small", "the whole"])
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a stale response is served on an error only to clients that accept its coding`() throws {
        try scenario { origin, proxy in
            origin.on("/x", Self.page("Cache-Control: max-age=10, stale-if-error=600", "Age: 20"))
            try proxy.get("/x", Self.gzip)
            origin.on("/whole", Self.page("Cache-Control: max-age=10", "Age: 20"))
            try proxy.get("/whole", Self.gzip)
            origin.on("/whole", Self.page("Cache-Control: max-age=10, stale-if-error=600", "Age: 20"))
            try proxy.get("/whole")
            for path in ["/x", "/whole"] { origin.on(path) { _ in [.answer(503, body: "busy")] } }
            #expect(try proxy.get("/x").text == "busy")
            #expect(try proxy.get("/x", Self.gzip).text == "small")
            // What is compressed may not be used stale; what is not may.
            #expect(try proxy.get("/whole", Self.gzip).text == "the whole")
        }
    }

    @Test func `a compressed full response keeps the uncompressed parts`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                guard request["accept-encoding"] == nil else {
                    // As servers do that compress: ranges are none of theirs then.
                    return [.answer(200, Self.fresh, "ETag: W/\"x\"", "Content-Encoding: gzip", body: "small")]
                }
                return [.answer(206, Self.fresh, "ETag: \"x\"", "Content-Range: bytes 0-3/100", body: "text")]
            }
            try proxy.get("/x", "Range: bytes=0-3")
            #expect(try proxy.get("/x", Self.gzip, "Range: bytes=0-9").text == "small")
            let hits = try [proxy.get("/x", Self.gzip), proxy.get("/x", "Range: bytes=0-3")]
            #expect(hits.map(\.text) == ["small", "text"])
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a part of a compressed response serves clients that accept the coding`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                let isCompressed = request["accept-encoding"]?.contains("gzip") == true
                // A part under `If-Range` leaves out what the client has already.
                let coding = isCompressed && request["if-range"] == nil ? ["Content-Encoding: gzip"] : []
                let first = request["range"] == "bytes=4-5" ? 4 : 0, last = first + (first == 0 ? 3 : 1)
                return [
                    .head(
                        206,
                        [
                            Self.fresh, "Vary: Origin", "ETag: \"\(isCompressed ? "gz" : "x")\"",
                            "Content-Length: \(last - first + 1)", "Content-Range: bytes \(first)-\(last)/100",
                        ] + coding),
                    .text(isCompressed ? (first == 0 ? "gzip" : "ip") : "text"),
                ]
            }
            let range = "Range: bytes=0-3"
            #expect(try proxy.get("/x", Self.gzip, range).text == "gzip")
            #expect(try proxy.get("/x", range).text == "text")
            #expect(try proxy.get("/x", Self.gzip, "Range: bytes=0-5").text == "gzipip")
            let hits = try [proxy.get("/x", Self.gzip, "Range: bytes=2-5"), proxy.get("/x", range)]
            #expect(hits.map(\.text) == ["ipip", "text"])
            let ranges = origin.requests("/x").map { "\($0["accept-encoding"] ?? "-") \($0["range"] ?? "-")" }
            #expect(ranges == ["gzip bytes=0-3", "- bytes=0-3", "gzip bytes=4-5"])
        }
    }
}
