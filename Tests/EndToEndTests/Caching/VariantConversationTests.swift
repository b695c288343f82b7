import Testing

/// `Vary`: one URL, several responses.
@Suite(.scenario) struct VariantConversationTests {
    private let languages = ["en", "de", "fr"]

    private func crowd(_ proxy: Program, _ target: String, each count: Int) -> Crowd {
        Crowd(
            at: proxy.endpoint,
            languages.enumerated().flatMap { index, language in
                Array(repeating: proxy.visitor(target, ["Accept-Language: \(language)"], seed: index + 1), count: count)
            })
    }

    private func answer(_ request: Received, length: Int) -> Step {
        let seed = (languages.firstIndex(of: request["accept-language"] ?? "") ?? -1) + 1
        return .answer(200, "Cache-Control: max-age=60", "Vary: Accept-Language", pattern: length, seed: seed)
    }

    @Test func `three variants for fifty clients each cause three fetches`() throws {
        try scenario { origin, proxy in
            origin.on("/v") { [self] in [.wait(.milliseconds(300)), answer($0, length: 20_000)] }
            let answers = crowd(proxy, "/v", each: 50).finished()

            #expect(answers.allSatisfy { $0.isWhole(20_000) })
            #expect(origin.count("/v") == 3)
            #expect(Set(origin.requests("/v").map { $0["accept-language"] }).count == 3)
            let slowest = answers.map(\.took).max()!
            note("3 variants for 50 clients each, origin 300 ms (promised 750 ms)", slowest.rounded)
            #expect(slowest < .milliseconds(750) + aStall)

            #expect(crowd(proxy, "/v", each: 5).finished().allSatisfy { $0.isWhole(20_000) })
            #expect(origin.count("/v") == 3)
        }
    }

    @Test func `other variants are fetched when the head arrives, before the first body has ended`() throws {
        try scenario { origin, proxy in
            let head = Gate(), body = Gate()
            origin.on("/v") { request in
                [
                    .gate(head), .head(200, "Cache-Control: max-age=60", "Vary: Accept-Language", "Content-Length: 2"),
                    .gate(body), .text(request["accept-language"] ?? ""),
                ]
            }
            let crowd = crowd(proxy, "/v", each: 10)
            try proxy.joined(30)
            try eventually("the leader has asked") { origin.count("/v") == 1 }
            head.open()
            try eventually("all three variants are fetched at once") { origin.count("/v") == 3 }
            body.open()
            let texts = crowd.finished().map(\.text)
            #expect(texts == languages.flatMap { Array(repeating: $0, count: 10) })
            #expect(origin.count("/v") == 3)
        }
    }

    @Test func `once Vary is known, variants are fetched in parallel from the start`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/v") { request in
                let language = request["accept-language"] ?? ""
                return [
                    .gate(language == "known" ? Gate.opened : gate),
                    .answer(200, "Cache-Control: max-age=60", "Vary: Accept-Language", body: language),
                ]
            }
            try proxy.get("/v", "Accept-Language: known")
            let crowd = crowd(proxy, "/v", each: 10)
            try eventually("no variant waits for another's head") { origin.count("/v") == 4 }
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 200 })
            #expect(origin.count("/v") == 4)
        }
    }

    private static let encodings = ["gzip, br", "br;q=1.0, gzip;q=0.8", "GZIP,br"]

    @Test(arguments: [true, false])
    func `two orders of Accept-Encoding are one variant and one fetch where the operator says so`(_ isOn: Bool) throws {
        try scenario(.other(section: "caching", key: "normalise-accept-encoding", value: "\(isOn)")) { origin, proxy in
            origin.on("/v") { request in
                [.answer(200, "Cache-Control: max-age=60", "Vary: Accept-Encoding", body: "\(request.number)")]
            }
            let asked = Self.encodings + ["gzip", "gzip, br, exotic"]
            let texts = try asked.map { try proxy.get("/v", "Accept-Encoding: \($0)").text }
            // Who accepts less must not get it, and who accepts something else as well may have got something else.
            #expect(texts == (isOn ? ["1", "1", "1", "2", "3"] : ["1", "2", "1", "3", "4"]))
        }
        try scenario(.other(section: "caching", key: "normalise-accept-encoding", value: "\(isOn)")) { origin, proxy in
            let gate = Gate()
            origin.on("/v") { request in
                [
                    .head(200, "Cache-Control: max-age=60", "Vary: Accept-Encoding", "Content-Length: 4"), .gate(gate),
                    .text("body"),
                ]
            }
            let crowd = Crowd(
                at: proxy.endpoint, Self.encodings.map { proxy.visitor("/v", ["Accept-Encoding: \($0)"], seed: 1) })
            try eventually("each variant is asked for") { origin.count("/v") == (isOn ? 1 : 2) }
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "body" })
            #expect(origin.count("/v") == (isOn ? 1 : 2))
        }
    }

    @Test func `a response with Vary * is never shared`() throws {
        try scenario { origin, proxy in
            origin.on("/v") { [.answer(200, "Cache-Control: max-age=60", "Vary: *", body: "\($0.number)")] }
            let answers = try [proxy.get("/v"), proxy.get("/v")]
            #expect(answers.map(\.text) == ["1", "2"])
        }
    }

    @Test func `a field that Connection names chooses no variant`() throws {
        try scenario { origin, proxy in
            origin.on("/v") {
                [
                    .answer(
                        200, "Cache-Control: max-age=60", "Vary: Accept-Language", body: $0["accept-language"] ?? "none"
                    )
                ]
            }
            let odd = try proxy.get("/v", "Accept-Language: de", "Connection: accept-language")
            let usual = try proxy.get("/v", "Accept-Language: de")
            let again = try proxy.get("/v", "Accept-Language: fr", "Connection: close, accept-language")
            #expect(odd.text == "none" && usual.text == "de" && again.text == "none")
            #expect(origin.count("/v") == 2)
        }
    }

    @Test(arguments: ["X-Forwarded-For", "Accept, via", "TE"])
    func `a response that varies by a field that the proxy adds to is not shared`(_ name: String) throws {
        try scenario { origin, proxy in
            origin.on("/v") { [.answer(200, "Cache-Control: max-age=60", "Vary: \(name)", body: "\($0.number)")] }
            let answers = try [proxy.get("/v"), proxy.get("/v")]
            #expect(answers.map(\.text) == ["1", "2"])
            #expect(answers[0]["cache-status"]?.contains("detail=vary-forwarded") ?? false)
        }
    }

    @Test(arguments: ["X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Original-URL", "Keep-Alive"])
    func `a field that is not forwarded chooses no variant`(_ name: String) throws {
        try scenario { origin, proxy in
            origin.on("/v") { [.answer(200, "Cache-Control: max-age=60", "Vary: \(name)", body: "\($0.number)")] }
            let texts = try ["one", "two", "three"].map { try proxy.get("/v", "\(name): \($0)").text }
            #expect(texts == ["1", "1", "1"])
        }
    }

    @Test func `a client's forwarding field chooses the variant where it is forwarded unchanged`() throws {
        try scenario(.other(section: "forwarding", key: "x-forwarded", value: "false")) { origin, proxy in
            origin.on("/v") {
                [
                    .answer(
                        200, "Cache-Control: max-age=60", "Vary: X-Forwarded-For, X-Forwarded-Host",
                        body: $0["x-forwarded-for"] ?? "none")
                ]
            }
            let texts = try ["a", "b", "a"].map { try proxy.get("/v", "X-Forwarded-For: \($0)").text }
            #expect(texts == ["a", "b", "a"])
            #expect(origin.count("/v") == 2)
        }
    }

    @Test func `a cookie in the key stands for all cookies of that name`() throws {
        try scenario(.other(section: "route", key: "key", value: "{cookies: [theme]}")) { origin, proxy in
            origin.on("/c") { [.answer(200, "Cache-Control: max-age=60", body: $0["cookie"] ?? "")] }
            let cookies = ["theme=light; theme=evil", "theme=light", "theme=light; x=1"]
            let texts = try cookies.map { try proxy.get("/c", "Cookie: \($0)").text }
            #expect(texts == [cookies[0], cookies[1], cookies[1]])
        }
    }

    @Test func `a cookie inside a quoted value does not count as a separate cookie`() throws {
        try scenario(.other(section: "route", key: "key", value: "{cookies: [theme]}")) { origin, proxy in
            origin.on("/c") { [.answer(200, "Cache-Control: max-age=60", body: $0["cookie"] ?? "")] }
            let cookies = ["a=\"; theme=dark; b=\"", "theme=dark", "theme=dark; a=\"x\""]
            let texts = try cookies.map { try proxy.get("/c", "Cookie: \($0)").text }
            #expect(texts == [cookies[0], cookies[1], cookies[1]])
        }
    }

    @Test func `two lines of a field that is no list differ from one line with a comma`() throws {
        try scenario(.other(section: "route", key: "key", value: "{headers: [x-tenant]}")) { origin, proxy in
            // As servers that take the first.
            origin.on("/v") {
                [.answer(200, "Cache-Control: max-age=60", "Vary: Referer", body: $0.head.all("referer").first ?? "")]
            }
            origin.on("/k") { [.answer(200, "Cache-Control: max-age=60", body: $0.head.all("x-tenant").first ?? "")] }
            for (path, name) in [("/v", "Referer"), ("/k", "X-Tenant")] {
                let odd = try proxy.get(path, "\(name): a", "\(name): b"), usual = try proxy.get(path, "\(name): a,b")
                #expect(odd.text == "a" && usual.text == "a,b")
            }
        }
    }
}
