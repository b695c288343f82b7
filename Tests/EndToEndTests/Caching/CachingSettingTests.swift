import Testing

/// What the operator says about freshness and room, where the response does not.
@Suite(.scenario) struct CachingSettingTests {
    @Test func `simultaneous requests share a fetch even if nothing is stored`() throws {
        try scenario(.other(section: "caching", key: "enabled", value: "false")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")] }
            let crowd = proxy.crowd(5, get: "/x")
            try proxy.joined(5)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "x" && !$0.cacheStatus.contains("stored") })
            #expect(origin.count("/x") == 1)
            let later = try proxy.get("/x")
            #expect(later.text == "x" && origin.count("/x") == 2)
        }
    }

    @Test func `a response is stored for later requests even if fetches are not shared`() throws {
        try scenario(.other(section: "coalescing", key: "enabled", value: "false")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")] }
            let crowd = proxy.crowd(5, get: "/x")
            try eventually("each is at the origin") { origin.count("/x") == 5 }
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "x" && !$0.cacheStatus.contains("collapsed") })
            try eventually("it is stored") { try proxy.get("/x").cacheStatus.contains("; hit") }
            #expect(try proxy.metric(.joined) == 0)
        }
    }

    @Test(arguments: [("honour", 2), ("ignore", 1)])
    func `the operator decides whether a request may force a fetch in place of the stored response`(
        rule: String, fetches: Int
    ) throws {
        try scenario(.other(section: "caching", key: "request-directives", value: rule)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            try proxy.get("/x")
            try proxy.get("/x", "Cache-Control: no-cache")
            #expect(origin.count("/x") == fetches)
        }
    }

    struct Lifetime: Sendable {
        let setting: Setting
        let seconds: Int

        static func share(_ share: String, _ seconds: Int) -> Self {
            Self(setting: .other(section: "caching", key: "heuristic-share", value: share), seconds: seconds)
        }
        static func limit(_ limit: String, _ seconds: Int) -> Self {
            Self(setting: .other(section: "caching", key: "heuristic-limit", value: limit), seconds: seconds)
        }
    }

    @Test(arguments: [
        Lifetime.share("10%", 1_000), .share("50%", 5_000), .share("1%", 100), .limit("60s", 60), .limit("1d", 1_000),
    ])
    func `a heuristic lifetime is the configured share of the time since the last change`(
        _ lifetime: Lifetime
    ) throws {
        try scenario(lifetime.setting) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Last-Modified: \(System.httpDate(-10_000))", body: "x")] }
            let told = try proxy.get("/x").cacheStatus.firstMatch(of: /ttl=(-?[0-9]+)/).flatMap { Int($0.1) }
            let timeToLive = try #require(told)
            #expect((lifetime.seconds - 5...lifetime.seconds + 5).contains(timeToLive), "\(timeToLive)")
        }
    }

    @Test(arguments: [
        Setting.other(section: "caching", key: "default-ttl", value: "60s"),
        .other(section: "route", key: "default-ttl", value: "60s"),
    ])
    func `a response without any lifetime has the operator's lifetime, unless it prohibits storing`(
        _ setting: Setting
    ) throws {
        try scenario(setting) { origin, proxy in
            origin.on("/plain") { _ in [.answer(200, body: "x")] }
            origin.on("/error") { _ in [.answer(500, body: "x")] }
            origin.on("/cookie") { _ in [.answer(200, "Set-Cookie: a=1", body: "x")] }
            origin.on("/private") { _ in [.answer(200, "Cache-Control: private", body: "x")] }
            origin.on("/authorized") { _ in [.answer(200, body: "x")] }
            for path in ["/plain", "/error", "/cookie", "/private"] { try proxy.get(path) }
            try proxy.get("/authorized", "Authorization: Basic YTpi")
            let plain = try proxy.get("/plain").cacheStatus
            #expect(plain.contains("; hit") && plain.contains(/ttl=(60|5[0-9])/), "\(plain)")
            for path in ["/error", "/cookie", "/private", "/authorized"] {
                let other = try proxy.get(path).cacheStatus
                #expect(!other.contains("; hit"), "\(path): \(other)")
            }
        }
    }

    @Test(arguments: ["caching", "route"])
    func `a response without any lifetime has that of its status`(section: String) throws {
        try scenario(.other(section: section, key: "default-ttl", value: "{200: 600s, 301: 0s, 404: 30s, other: 60s}"))
        {
            origin, proxy in
            let seconds = [200: 600, 301: 0, 302: 0, 404: 30, 410: 60, 500: 0]
            for status in seconds.keys { origin.on("/\(status)") { _ in [.answer(status, body: "x")] } }
            origin.on("/says") { _ in [.answer(404, "Cache-Control: max-age=5", body: "x")] }
            origin.on("/changed") { _ in [.answer(200, "Last-Modified: \(System.httpDate(-1_000))", body: "x")] }
            for (status, lifetime) in seconds {
                let first = try proxy.get("/\(status)").cacheStatus, second = try proxy.get("/\(status)").cacheStatus
                #expect(first.contains("; stored") == (lifetime > 0), "\(first)")
                #expect(second.contains("; hit") == (lifetime > 0), "\(status): \(second)")
                guard lifetime > 0 else { continue }
                let told = second.firstMatch(of: /ttl=([0-9]+)/).flatMap { Int($0.1) }
                let left = try #require(told)
                #expect((lifetime - 10...lifetime).contains(left), "\(status): \(second)")
            }
            let says = try proxy.get("/says").cacheStatus, changed = try proxy.get("/changed").cacheStatus
            #expect(says.contains("ttl=5"), "\(says)")
            #expect(changed.contains(/ttl=(100|9[0-9])/), "\(changed)")
        }
    }

    /// RFC 9111 §4.2.2: a tenth of the time since then is less than a second, or the operator wants no share of it.
    @Test(arguments: [("10%", -2), ("10%", 0), ("10%", 100), ("0%", -1_000), ("0%", -2)])
    func `a page without a heuristic lifetime has the operator's lifetime`(
        share: String, changed: Int
    ) throws {
        try scenario(
            .other(section: "caching", key: "default-ttl", value: "60s"),
            .other(section: "caching", key: "heuristic-share", value: share)
        ) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Last-Modified: \(System.httpDate(changed))", body: "x")] }
            try proxy.get("/x")
            let second = try proxy.get("/x").cacheStatus
            #expect(second.contains("; hit") && second.contains(/ttl=(60|5[0-9])/), "\(second)")
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a redirection has the operator's lifetime only if its status is listed`() throws {
        try scenario(.other(section: "caching", key: "default-ttl", value: "{302: 60s, other: 60s}")) { origin, proxy in
            for status in [302, 307, 303] { origin.on("/\(status)") { _ in [.answer(status, "Location: /")] } }
            origin.on("/cookie") { _ in [.answer(302, "Location: /", "Set-Cookie: a=1")] }
            origin.on("/private") { _ in [.answer(302, "Location: /", "Cache-Control: private")] }
            origin.on("/says") { _ in [.answer(302, "Location: /", "Cache-Control: max-age=0")] }
            for (path, isHit) in [
                ("/302", true), ("/307", false), ("/303", false), ("/cookie", false), ("/private", false),
                ("/says", false),
            ] {
                try proxy.get(path)
                #expect(try proxy.get(path).cacheStatus.contains("; hit") == isHit, "\(path)")
            }
        }
    }

    @Test(arguments: ["caching", "route"])
    func `a lifetime may be less than a second`(section: String) throws {
        try scenario(.other(section: section, key: "default-ttl", value: "400ms")) { origin, proxy in
            // Answers of one moment, and later ones: by what came back nobody knows how long the machine took.
            origin.on("/x") { request in [.answer(200, body: "\(request.number)")] }
            try eventually("one is a hit") { try proxy.get("/x").cacheStatus.contains("; hit; ttl=1") }
            let last = origin.count("/x")
            System.nap(.milliseconds(500))
            try proxy.get("/x")
            #expect(origin.count("/x") == last + 1)
        }
    }

    @Test(arguments: [true, false])
    func `the targeted fields are those that the operator lists, in that order`(areNamed: Bool)
        throws
    {
        let named = Setting.other(
            section: "caching", key: "targeted-fields", value: "[edge-cache-control, cdn-cache-control]")
        try scenario(areNamed ? named : .workers(1)) { origin, proxy in
            origin.on("/both") { _ in
                [
                    .answer(
                        200, "Cache-Control: max-age=10", "CDN-Cache-Control: max-age=2000",
                        "Edge-Cache-Control: max-age=3000", body: "x")
                ]
            }
            origin.on("/none") { _ in
                [.answer(200, "Cache-Control: max-age=1000", "Edge-Cache-Control: no-store", body: "x")]
            }
            let both = try proxy.get("/both").cacheStatus, none = try proxy.get("/none").cacheStatus
            #expect(both.contains(areNamed ? "ttl=3000" : "ttl=2000"), "\(both)")
            #expect(none.contains("; stored") == !areNamed, "\(none)")
        }
    }

    @Test(arguments: [
        ("public-only", "public, max-age=60", true), ("public-only", "max-age=60", false),
        ("never", "public, max-age=60", false),
        ("always", "max-age=60", true),
    ])
    func `a response with a cookie is shared if the operator and the response permit`(
        rule: String, control: String, isShared: Bool
    ) throws {
        try scenario(.other(section: "caching", key: "set-cookie", value: rule)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: \(control)", "Set-Cookie: a=b", body: "x")] }
            try proxy.get("/x")
            let second = try proxy.get("/x")
            #expect(second.text == "x" && origin.count("/x") == (isShared ? 1 : 2))
        }
    }

    @Test(arguments: [("60s", true), ("5s", false)])
    func `a stale response is served during its refresh for the configured time`(time: String, isServed: Bool) throws {
        try scenario(.other(section: "caching", key: "stale-while-revalidate", value: time)) { origin, proxy in
            // Ten seconds overdue when it comes.
            origin.on("/x") { request in
                [
                    .answer(
                        200, "Cache-Control: max-age=10", request.number == 1 ? "Age: 20" : "Age: 0",
                        body: "\(request.number)")
                ]
            }
            try proxy.get("/x")
            let second = try proxy.get("/x")
            #expect(second.text == (isServed ? "1" : "2"), "\(second.cacheStatus)")
            try eventually("it is fetched anew") { try proxy.get("/x").text == "2" }
            #expect(origin.count("/x") == 2)
        }
    }

    /// Of eight mebibytes a quarter, or all.
    @Test(arguments: [(share: "25%", isStored: false), ("100%", true)])
    func `a response larger than the in-flight share is not stored`(_ setting: (share: String, isStored: Bool))
        throws
    {
        try scenario(.memory(mebibytes: 8), .other(section: "storage", key: "in-flight-share", value: setting.share)) {
            origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: 3 << 20)] }
            let first = try proxy.get("/x"), second = try proxy.get("/x")
            #expect(first.isWhole(3 << 20) && second.isWhole(3 << 20))
            #expect(origin.count("/x") == (setting.isStored ? 1 : 2))
        }
    }
}
