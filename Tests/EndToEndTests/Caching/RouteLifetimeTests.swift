import Testing

/// How long responses are used if the operator says so, against what they say themselves.
@Suite(.scenario) struct RouteLifetimeTests {
    static let caching = Setting.other(section: "caching", key: "ttl", value: "{200: 10m, 500: 1m}")
    static let route = Setting.other(section: "route", key: "ttl", value: "{200: 10m, 500: 1m}")

    /// Of two requests, one after the other.
    private static func texts(of path: String, from proxy: Program) throws -> [String] {
        try [proxy.get(path).text, proxy.get(path).text]
    }

    @Test(arguments: [caching, route])
    func `ttl takes the place of what a response says, and clients see its own fields`(_ setting: Setting) throws {
        try scenario(setting) { origin, proxy in
            let fields = "Cache-Control: no-cache, max-age=0, must-revalidate"
            origin.on("/x") { [.answer(200, fields, "Age: 70", body: "\($0.number)")] }
            #expect(try proxy.get("/x").text == "1")
            let hit = try proxy.get("/x")
            #expect(hit.text == "1" && hit.cacheStatus.contains("; hit"), "\(hit.cacheStatus)")
            let ttl = hit.cacheStatus.firstMatch(of: /ttl=([0-9]+)/).flatMap { Int($0.1) } ?? 0
            #expect((590...600).contains(ttl), "\(hit.cacheStatus)")
            #expect(hit["cache-control"] == "no-cache, max-age=0, must-revalidate")
            #expect(Int(hit["age"] ?? "").map { $0 >= 70 } == true)
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `ttl lets an error be kept only if its status is named`() throws {
        try scenario(Self.caching) { origin, proxy in
            origin.on("/500") { [.answer(500, body: "\($0.number)")] }
            origin.on("/503") { [.answer(503, body: "\($0.number)")] }
            let named = try Self.texts(of: "/500", from: proxy), other = try Self.texts(of: "/503", from: proxy)
            #expect(named == ["1", "1"] && other == ["1", "2"])
        }
    }

    @Test func `simultaneous requests share a response that ttl makes fresh, though it says no-cache`() throws {
        try scenario(Self.caching) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { [.gate(gate), .answer(200, "Cache-Control: no-cache", body: "\($0.number)")] }
            let crowd = Crowd(
                at: proxy.endpoint, (0..<20).map { proxy.visitor("/x", ["Cookie: id=\($0)"]) })
            try proxy.joined(20)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "1" })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(arguments: ["Cache-Control: private", "Cache-Control: no-store", "Set-Cookie: a=b", "Vary: *"])
    func `ttl never shares what is for one client`(_ field: String) throws {
        try scenario(Self.caching) { origin, proxy in
            origin.on("/x") { [.answer(200, field, body: "\($0.number)")] }
            let texts = try Self.texts(of: "/x", from: proxy)
            #expect(texts == ["1", "2"])
            let status = try proxy.get("/x").cacheStatus
            #expect(status.contains("; detail=") && !status.contains("ttl="), "\(status)")
        }
    }

    @Test func `ttl gives no page of one user to another`() throws {
        try scenario(Self.caching) { origin, proxy in
            origin.on("/x") {
                [
                    .answer(
                        200, "Cache-Control: no-cache, must-revalidate", "ETag: \"a\"",
                        body: $0["authorization"] ?? "none")
                ]
            }
            for user in ["Basic a", "Basic b"] {
                let page = try proxy.get("/x", "Authorization: \(user)")
                #expect(page.text == user)
            }
            #expect(try proxy.get("/x").text == "none")
        }
    }

    @Test func `a route may have no ttl though all others have one`() throws {
        try scenario(Self.caching, .other(section: "route", key: "ttl", value: "none")) { origin, proxy in
            origin.on("/x") { [.answer(200, "Cache-Control: no-cache", body: "\($0.number)")] }
            let texts = try Self.texts(of: "/x", from: proxy)
            #expect(texts == ["1", "2"])
        }
    }

    @Test(arguments: ["caching", "route"])
    func `min-ttl and max-ttl bound what a response says`(_ section: String) throws {
        let least =
            section == "route"
            ? Setting.other(section: "route", key: "min-ttl", value: "100s")
            : Setting.other(section: "caching", key: "min-ttl", value: "100s")
        let most =
            section == "route"
            ? Setting.other(section: "route", key: "max-ttl", value: "1000s")
            : Setting.other(section: "caching", key: "max-ttl", value: "1000s")
        try scenario(least, most) { origin, proxy in
            for (path, field, bounds) in [
                ("/short", "Cache-Control: max-age=0", 90...100), ("/long", "Cache-Control: max-age=86400", 990...1000),
                ("/between", "Cache-Control: max-age=500", 490...500),
            ] {
                origin.on(path) { _ in [.answer(200, field, body: path)] }
                try proxy.get(path)
                let hit = try proxy.get(path)
                let ttl = hit.cacheStatus.firstMatch(of: /ttl=([0-9]+)/).flatMap { Int($0.1) } ?? 0
                #expect(bounds.contains(ttl), "\(path) \(hit.cacheStatus)")
            }
            origin.on("/none") { [.answer(200, body: "\($0.number)")] }
            let texts = try Self.texts(of: "/none", from: proxy)
            #expect(texts == ["1", "2"])
        }
    }
}
