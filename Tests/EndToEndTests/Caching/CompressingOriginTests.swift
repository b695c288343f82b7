import Testing

/// Origins that compress what they send, and evaluate conditions before they do: their 304 has the tag of the
/// uncompressed page, whatever they would have sent (nginx, Apache).
@Suite(.scenario) struct CompressingOriginTests {
    enum Kind: CaseIterable, Sendable {
        /// nginx: the tag of what it compresses is weak.
        case weakens
        /// Apache with `DeflateAlterETag NoChange`: both have the strong one.
        case changesNothing
    }

    private static let gzip = "Accept-Encoding: gzip"
    private static let reload = "Cache-Control: no-cache"

    private static func script(_ origin: ScriptedOrigin, _ kind: Kind) {
        origin.on("/page") { request in
            if request["if-none-match"]?.contains("\"x\"") ?? false {
                return [.answer(304, "ETag: \"x\"", "X-Told: 304")]
            }
            guard request["accept-encoding"] == "gzip" else {
                return [
                    .answer(
                        200, "Cache-Control: max-age=600", "Vary: Accept-Encoding", "ETag: \"x\"", body: "the whole")
                ]
            }
            return [
                .answer(
                    200, "Cache-Control: max-age=600", "Vary: Accept-Encoding", "Content-Encoding: gzip",
                    kind == .weakens ? "ETag: W/\"x\"" : "ETag: \"x\"", body: "small")
            ]
        }
    }

    @Test(arguments: Kind.allCases)
    func `a client that accepts gzip gets the compressed page although the plain one is stored`(_ kind: Kind) throws {
        try scenario { origin, proxy in
            Self.script(origin, kind)
            try proxy.get("/page")
            let answer = try proxy.get("/page", Self.gzip)
            #expect(answer.text == "small" && answer["content-encoding"] == "gzip")
            let hits = try [proxy.get("/page", Self.gzip), proxy.get("/page")]
            #expect(hits.map(\.text) == ["small", "the whole"])
            #expect(origin.requests("/page").map { $0["if-none-match"] } == [nil, nil])
        }
    }

    @Test(arguments: Kind.allCases)
    func `a client without gzip gets the plain page although the compressed one is stored`(_ kind: Kind) throws {
        try scenario { origin, proxy in
            Self.script(origin, kind)
            try proxy.get("/page", Self.gzip)
            let answer = try proxy.get("/page")
            #expect(answer.text == "the whole" && answer["content-encoding"] == nil)
        }
    }

    @Test(arguments: Kind.allCases) func `a forced validation keeps both variants`(_ kind: Kind) throws {
        try scenario { origin, proxy in
            Self.script(origin, kind)
            try proxy.get("/page", Self.gzip)
            try proxy.get("/page")
            let reloads = try [proxy.get("/page", Self.gzip, Self.reload), proxy.get("/page", Self.reload)]
            #expect(reloads.map(\.text) == ["small", "the whole"])
            let hits = try [proxy.get("/page", Self.gzip), proxy.get("/page")]
            #expect(hits.map(\.text) == ["small", "the whole"])
            #expect(hits.allSatisfy { $0.cacheStatus.contains("hit") })
        }
    }

    @Test func `a compressed page is confirmed with one request, and its tag stays weak`() throws {
        try scenario { origin, proxy in
            Self.script(origin, .weakens)
            try proxy.get("/page", Self.gzip)
            let own = try [
                proxy.get("/page", Self.gzip, Self.reload),
                proxy.get("/page", Self.gzip, Self.reload, "If-None-Match: \"other\""), proxy.get("/page", Self.gzip),
            ]
            for answer in own {
                #expect(answer.text == "small" && answer["content-encoding"] == "gzip")
                #expect(answer["etag"] == "W/\"x\"" && answer["x-told"] == "304")
            }
            #expect(own[2].cacheStatus.contains("hit"))
            let reload = try proxy.get("/page", Self.gzip, Self.reload, "If-None-Match: W/\"x\"")
            #expect(reload.status == 304 && reload["etag"] == "W/\"x\"")
            #expect(
                origin.requests("/page").map { $0["if-none-match"] } == [
                    nil, "W/\"x\"", "W/\"x\", \"other\"", "W/\"x\"",
                ])
        }
    }

    @Test func `a 304 for a client's uncompressed page serves that client alone`() throws {
        try scenario { origin, proxy in
            Self.script(origin, .weakens)
            try proxy.get("/page", Self.gzip)
            let answer = try proxy.get("/page", Self.gzip, Self.reload, "If-None-Match: \"x\"")
            #expect(answer.status == 304 && answer["etag"] == "\"x\"")
            #expect(origin.count("/page") == 2)
            let hit = try proxy.get("/page", Self.gzip)
            #expect(hit.text == "small" && hit["x-told"] == nil)
        }
    }
}
