import Testing

/// How many variants of one URL are kept (`storage.max-variants`), and which.
@Suite(.scenario) struct VariantNumberTests {
    private static func most(_ count: Int) -> Setting {
        .other(section: "storage", key: "max-variants", value: "\(count)")
    }

    private static func script(_ origin: ScriptedOrigin) {
        origin.on("/v") {
            [
                .answer(
                    200, "Cache-Control: max-age=600", "Vary: Accept-Language", body: $0["accept-language"] ?? "none")
            ]
        }
    }

    @Test func `a hundred languages cause a hundred fetches, however often each is requested`() throws {
        try scenario { origin, proxy in
            Self.script(origin)
            for _ in 0..<3 {
                for number in 0..<100 {
                    let answer = try proxy.get("/v", "Accept-Language: l\(number)")
                    #expect(answer.text == "l\(number)")
                }
            }
            #expect(origin.count("/v") == 100)
        }
    }

    @Test func `a variant requested now and then is lost at most once among variants requested once`() throws {
        try scenario(Self.most(10)) { origin, proxy in
            Self.script(origin)
            for number in 0..<100 {
                if number % 20 == 0 { try proxy.get("/v", "Accept-Language: hot") }
                try proxy.get("/v", "Accept-Language: l\(number)")
                // The one just stored is there, whatever it took the place of.
                let again = number % 10 == 9 ? try proxy.get("/v", "Accept-Language: l\(number)") : nil
                #expect(again?.cacheStatus.contains("hit") ?? true)
            }
            // Nobody had asked for it twice when it went. That it came back is remembered.
            let hot = origin.requests("/v").filter { $0["accept-language"] == "hot" }
            #expect(hot.count == 2)
            #expect(origin.count("/v") == 102)
        }
    }

    @Test func `a variant with an older Date is stored like any other`() throws {
        try scenario(Self.most(3)) { origin, proxy in
            origin.on("/v") { request in
                let old = request["accept-language"] == "old" ? ["Date: Thu, 01 Jan 2026 00:00:00 GMT"] : []
                return [
                    .head(
                        200, ["Cache-Control: max-age=999999999", "Vary: Accept-Language", "Content-Length: 1"] + old),
                    .text("x"),
                ]
            }
            for language in ["a", "b", "c"] { try proxy.get("/v", "Accept-Language: \(language)") }
            let first = try proxy.get("/v", "Accept-Language: old"),
                second = try proxy.get("/v", "Accept-Language: old")
            #expect(first.cacheStatus.contains("stored") && second.cacheStatus.contains("hit"))
        }
    }

    @Test func `parts are stored for as many variants as full responses`() throws {
        try scenario(.rangeMisses("part"), Self.most(20)) { origin, proxy in
            origin.on("/v") { _ in
                [
                    .answer(
                        206, "Cache-Control: max-age=600", "Vary: Accept-Language", "ETag: \"x\"",
                        "Content-Range: bytes 0-3/100", body: "part")
                ]
            }
            for number in 0..<30 { try proxy.get("/v", "Accept-Language: l\(number)", "Range: bytes=0-3") }
            for number in 10..<30 {
                let hit = try proxy.get("/v", "Accept-Language: l\(number)", "Range: bytes=0-3")
                #expect(hit.text == "part" && hit.cacheStatus.contains("hit"))
            }
            #expect(origin.count("/v") == 30)
        }
    }
}
