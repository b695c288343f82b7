import Testing

/// The languages of a site: a request's `Accept-Language` becomes the best of them.
@Suite(.scenario) struct SiteLanguageTests {
    private static let setting = Setting.other(section: "route", key: "key", value: "{language: [en, de, pt-BR]}")

    /// A page that says in which language it was asked for.
    private static func page(_ request: Received) -> [Step] {
        [
            .answer(
                200, "Cache-Control: max-age=60", "Vary: Accept-Language",
                body: "\(request.number) \(request["accept-language"] ?? "none")")
        ]
    }

    @Test func `a page is fetched once for each language of the site`() throws {
        try scenario(Self.setting) { origin, proxy in
            origin.on("/x", Self.page)
            for (asked, page) in [
                ("de-AT,de;q=0.9,en;q=0.5", "1 de"), ("de", "1 de"), ("fr, DE-ch;q=0.3", "1 de"),
                ("en-US,en;q=0.5", "2 en"), ("fr;q=0.9, en;q=0.8, de;q=0.7", "2 en"), ("pt-br", "3 pt-BR"),
                ("fr", "4 none"), ("*", "4 none"), ("de;q=0", "4 none"), ("pt", "4 none"),
            ] {
                let answer = try proxy.get("/x", "Accept-Language: \(asked)")
                #expect(answer.text == page, "\(asked)")
            }
            #expect(try proxy.get("/x").text == "4 none")
            #expect(try proxy.get("/x", "Accept-Language: fr;q=0.5", "Accept-Language: en;q=0.1").text == "2 en")
            #expect(origin.count("/x") == 4)
            #expect(origin.requests("/x")[3].head.all("accept-language").isEmpty)
        }
    }

    @Test func `a crowd of many languages makes one fetch for each of the site`() throws {
        try scenario(Self.setting) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { [.gate(gate)] + Self.page($0) }
            let asked = ["de-AT, en;q=0.1", "de", "en-GB", "en, de;q=0.9", "de-CH;q=0.4, fr"]
            let crowd = Crowd(
                at: proxy.endpoint, (0..<50).map { proxy.visitor("/x", ["Accept-Language: \(asked[$0 % 5])"]) })
            try proxy.joined(50)
            gate.open()
            for (index, answer) in crowd.finished().enumerated() {
                #expect(answer.text.hasSuffix([" de", " de", " en", " en", " de"][index % 5]), "\(answer.text)")
            }
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `with the field in the key, a page without Vary has its languages too`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("*") { [.answer(200, "Cache-Control: max-age=60", body: $0["accept-language"] ?? "none")] }
        let proxy = try Program.serve(
            file: """
                upstreams:
                  - {name: shop, servers: ["\(origin.url)"]}
                routes:
                  - {upstream: shop, path: /a, key: {language: [en, de], headers: [accept-language]}}
                  - {upstream: shop, path: /b, key: {language: [en, de]}}

                """)
        defer { proxy.stop() }
        for (asked, answer) in [("de-AT", "de"), ("en, de", "en"), ("de;q=0.1", "de"), ("fr", "none")] {
            #expect(try proxy.get("/a", "Accept-Language: \(asked)").text == answer)
            #expect(try proxy.get("/b", "Accept-Language: \(asked)").text == "de", "the first that was asked for")
        }
        #expect(origin.count("/a") == 3 && origin.count("/b") == 1)
    }
}
