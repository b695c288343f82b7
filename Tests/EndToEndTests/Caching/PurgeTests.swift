import Testing

@Suite(.scenario) struct PurgeTests {
    @Test func `a purged page is fetched again, its neighbours are not`() throws {
        try scenario { origin, proxy in
            origin.on("*") { [.answer(200, "Cache-Control: max-age=600", body: "\($0.number)")] }
            for path in ["/a", "/b"] { try proxy.get(path) }
            let purge = try proxy.purge("http://\(proxy.host)/a")
            #expect((200..<300).contains(purge.status), "\(purge.text)")
            #expect(try proxy.get("/a").text == "2")
            #expect(try proxy.get("/b").text == "1")
        }
    }

    @Test func `everything can be purged`() throws {
        try scenario { origin, proxy in
            origin.on("*") { [.answer(200, "Cache-Control: max-age=600", body: "\($0.number)")] }
            for path in ["/a", "/b"] { try proxy.get(path) }
            #expect(try (200..<300).contains(proxy.purgeAll().status))
            #expect(try proxy.get("/a").text == "2")
            #expect(try proxy.get("/b").text == "2")
        }
    }

    @Test func `the purge command purges a page`() throws {
        try scenario { origin, proxy in
            origin.on("*") { [.answer(200, "Cache-Control: max-age=600", body: "\($0.number)")] }
            for path in ["/a", "/b"] { try proxy.get(path) }
            let one = try proxy.command("purge", "http://\(proxy.host)/a")
            #expect(one.exit == .code(0), "\(one.everything)")
            #expect(try proxy.get("/a").text == "2")
            #expect(try proxy.get("/b").text == "1")
            #expect(try proxy.command("purge", "--all").exit == .code(0))
            #expect(try proxy.get("/b").text == "2")
            let none = try proxy.command("purge", "http://a/", "http://b/")
            #expect(none.exit == .code(0) && none.errors.contains("with the port unless it is the scheme's default"))
            let told = proxy.diagnostics.split(separator: "\n").filter { $0.contains(" purged ") }
            let ends = [
                "purged 1 stored response: http://\(proxy.host)/a", "purged 2 stored responses: all",
                "purged 0 stored responses: http://a/, and 1 more",
            ]
            #expect(told.count == 3 && zip(told, ends).allSatisfy { $0.hasSuffix("info: \($1)") }, "\(told)")
        }
    }

    @Test func `the purge command takes several URLs, and purges none if one is wrong`() throws {
        try scenario { origin, proxy in
            origin.on("*") { [.answer(200, "Cache-Control: max-age=600", body: "\($0.number)")] }
            let paths = ["/a", "/b", "/c", "/img/a", "/css/a"]
            for path in paths { try proxy.get(path) }
            func urls(_ paths: String...) -> [String] { paths.map { "http://\(proxy.host)\($0)" } }
            func texts() throws -> [String] { try paths.map { try proxy.get($0).text } }
            for wrong in ["/b", "http://", "http://a/#b", "http://me@a/", "ftp://a/"] {
                let run = try proxy.command(["purge"] + urls("/a") + [wrong])
                // A user name may come with a password.
                let shown = wrong.replacing("me@", with: "***@")
                #expect(run.exit == .code(64) && run.errors.contains("'\(shown)' is not a URL"), "\(run.everything)")
            }
            #expect(try texts() == ["1", "1", "1", "1", "1"])
            let two = try proxy.command(["purge"] + urls("/a", "/b"))
            #expect(two.exit == .code(0) && two.output.hasPrefix("purged 2 stored"), "\(two.everything)")
            #expect(try texts() == ["2", "2", "1", "1", "1"])
            let below = try proxy.command(["purge", "--prefix"] + urls("/img", "/css"))
            #expect(below.exit == .code(0) && below.output.hasPrefix("purged 2 stored"), "\(below.everything)")
            #expect(try texts() == ["2", "2", "1", "2", "2"])
            let many = try proxy.command(["purge"] + Array(repeating: "http://a/", count: 101))
            #expect(many.exit == .code(64) && many.errors.contains("at most 100"), "\(many.everything)")
        }
    }

    @Test func `an https URL is purged also for http, the scheme of a TLS proxy in front`() throws {
        try scenario { origin, proxy in
            origin.on("*") { [.answer(200, "Cache-Control: max-age=600", body: "\($0.number)")] }
            for path in ["/a", "/b/c"] { try proxy.get(path, "Host: www.example.com") }
            let one = try proxy.command("purge", "https://www.example.com/a")
            #expect(one.output.hasPrefix("purged 1 stored"), "\(one.everything)")
            let below = try proxy.purge("prefix HTTPS://www.example.com:443/b")
            #expect(below.text.hasPrefix("purged 1 stored"), "\(below.text)")
        }
    }

    @Test func `the purge command reports a pattern, and an address that is the public listener`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, body: "x")] }
            let pattern = try proxy.command("purge", "http://\(proxy.host)/img/*")
            #expect(
                pattern.exit == .code(0) && pattern.errors.contains("'*' is not a wildcard")
                    && pattern.errors.contains("--prefix"), "\(pattern.everything)")
            let wrong = try Program.run("purge", "--admin", "127.0.0.1:\(proxy.endpoint.port)", "--all")
            #expect(
                wrong.exit == .code(69) && wrong.errors.contains("not from a coalesced admin listener"),
                "\(wrong.everything)")
        }
    }

    @Test func `a response in flight during a purge is not served later`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                [
                    .head(200, "Cache-Control: max-age=600", "Content-Length: 2"), .text("v"), .gate(gate),
                    .text("\(request.number)"),
                ]
            }
            let crowd = proxy.crowd(5, get: "/x")
            try eventually("it is under way") { crowd.answers.allSatisfy { $0.body.length == 1 } }
            try proxy.purge("http://\(proxy.host)/x")
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "v1" })
            #expect(try proxy.get("/x").text == "v2")
        }
    }

    @Test(arguments: ["purge", "POST"])
    func `a response invalidated before its head is not reported as stored`(_ how: String) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request.method == "POST"
                    ? [.requestBody, .answer(200)]
                    : [.gate(gate), .answer(200, "Cache-Control: max-age=600", body: "x")]
            }
            let crowd = proxy.crowd(2, get: "/x")
            try proxy.joined(2)
            try eventually("it is asked for") { origin.count("/x") == 1 }
            if how == "purge" {
                try proxy.purge("http://\(proxy.host)/x")
            } else {
                try proxy.send("POST", "/x", body: "q")
            }
            gate.open()
            let answers = crowd.finished()
            #expect(
                answers.allSatisfy {
                    $0.text == "x" && !$0.cacheStatus.contains("stored") && $0.cacheStatus.contains("detail=outdated")
                })
            #expect(try proxy.get("/x").cacheStatus.contains("stored"))
        }
    }

    private static func letter(_ number: Int) -> String { String(UnicodeScalar(UInt8(96 + number))) }

    @Test(arguments: ["", "No-Vary-Search: key-order"])
    func `a purge removes every key of a URL, whatever the fields and cookies in the keys`(search: String) throws {
        try scenario(.other(section: "route", key: "key", value: "{headers: [x-tenant], cookies: [theme]}")) {
            origin, proxy in
            let gate = Gate()
            let fields = ["Cache-Control: max-age=600"] + (search.isEmpty ? [] : [search])
            origin.on("*") { request in
                let wait: [Step] = request["x-tenant"] == "slow" ? [.gate(gate)] : []
                return [.head(200, fields + ["Content-Length: 2"]), .text("v")] + wait + [
                    .text(Self.letter(request.number))
                ]
            }
            func texts(_ path: String) throws -> [String] {
                try [
                    proxy.get(path), proxy.get(path, "X-Tenant: a"),
                    proxy.get(path, "X-Tenant: a", "Cookie: theme=dark"),
                ].map(\.text)
            }
            let (page, other) = try (texts("/x?a=1"), texts("/x?a=2"))
            #expect(page == ["va", "vb", "vc"] && other == ["vd", "ve", "vf"])
            let slow = proxy.crowd(1, get: "/x?a=1", "X-Tenant: slow")
            try eventually("it is under way") { slow.answers.allSatisfy { $0.body.length == 1 } }
            let purge = try proxy.purge("http://\(proxy.host)/x?a=1")
            #expect(purge.text.contains("3"), "\(purge.text)")
            gate.open()
            #expect(slow.finished()[0].text == "vg")
            let (anew, stored) = try (texts("/x?a=1"), texts("/x?a=2"))
            #expect(anew == ["vh", "vi", "vj"] && stored == other)
            #expect(try proxy.get("/x?a=1", "X-Tenant: slow").text == "vk")
        }
    }

    @Test func `a prefix purges a URL and everything below`() throws {
        try scenario { origin, proxy in
            origin.on("*") { [.answer(200, "Cache-Control: max-age=600", "Vary: X-Kind", body: "\($0.number)")] }
            let (below, others) = (
                ["/img", "/img?a", "/img/", "/img/a", "/img/a/b?c=d"],
                ["/", "/im", "/imgs", "/img%2Fa", "/other?/img/"]
            )
            func texts(_ paths: [String]) throws -> [String] {
                try paths.flatMap { path in
                    try ["", "X-Kind: a"].map { try $0.isEmpty ? proxy.get(path).text : proxy.get(path, $0).text }
                }
            }
            let (first, kept) = try (texts(below), texts(others))
            let run = try proxy.command("purge", "--prefix", "http://\(proxy.host)/img")
            #expect(run.exit == .code(0) && run.output.hasPrefix("purged 10 stored"), "\(run.everything)")
            #expect(try texts(others) == kept)
            #expect(try zip(texts(below), first).allSatisfy { $0 != $1 })
            // In one request with others, and of the whole host.
            let mixed = try proxy.purge(
                "http://\(proxy.host)/imgs\nprefix http://\(proxy.host)/img/\nhttp://\(proxy.host)/im")
            #expect(mixed.text.hasPrefix("purged 10 stored"), "\(mixed.text)")
            let elsewhere = try proxy.purge("prefix http://elsewhere/")
            let all = try proxy.purge("prefix http://\(proxy.host)")
            #expect(
                elsewhere.text.hasPrefix("purged 0 ") && all.text.hasPrefix("purged 10 stored"),
                "\(elsewhere.text) \(all.text)")
        }
    }

    @Test func `a fetch below a purged prefix is neither stored nor joined`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("*") { request in
                [
                    .head(200, "Cache-Control: max-age=600", "No-Vary-Search: params=(\"u\")", "Content-Length: 2"),
                    .text("v"),
                ]
                    + (request.number == 1 ? [.gate(gate)] : []) + [.text("\(request.number)")]
            }
            let (crowd, other) = (proxy.crowd(3, get: "/img/a?u=1"), proxy.crowd(1, get: "/other"))
            try eventually("both are under way") { (crowd.answers + other.answers).allSatisfy { $0.body.length == 1 } }
            try proxy.purge("prefix http://\(proxy.host)/img/")
            #expect(try proxy.send("GET", "/img/a?u=2").text == "v2", "nobody joins it any more")
            try eventually("it is stored") { try proxy.metric(.inFlight) == 2 }
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "v1" })
            #expect(other.finished()[0].text == "v1")
            try proxy.fetchesEnd(of: "/other")
            let (after, kept) = try (proxy.get("/img/a?u=3"), proxy.get("/other"))
            #expect(after.text == "v2" && after.cacheStatus.contains("hit"))
            #expect(kept.text == "v1" && kept.cacheStatus.contains("hit"))
        }
    }

    @Test func `sixty purges at once each get their own count, and nothing that they cover is served again`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("*") { [.answer(200, "Cache-Control: max-age=600", body: "\($0.number)")] }
            origin.on("/0/slow") { request in
                [
                    .head(200, "Cache-Control: max-age=600", "Content-Length: 2"), .text("v"), .gate(gate),
                    .text("\(request.number)"),
                ]
            }
            let paths = (0..<41).flatMap { folder in (0..<3).map { "/\(folder)/\($0)" } }
            for path in paths { try proxy.get(path) }
            let slow = proxy.crowd(1, get: "/0/slow")
            try eventually("it is under way") { slow.answers.allSatisfy { $0.body.length == 1 } }
            // Of the first 38 folders each has a purge of its own. The others purge two folders, some of them both.
            let lines = (0..<60).map { number in
                number < 38
                    ? "/\(number)/" : number % 3 == 0 ? "/38" : number % 3 == 1 ? "/39/" : "/38/\nprefix HOST/39/1"
            }
            let visitors = lines.map { line in
                let lines = "prefix HOST\(line)".replacing("HOST", with: "http://\(proxy.host)")
                return Visitor(request: Array(proxy.admin.request("POST", "/purge", body: lines).utf8), method: "POST")
            }
            let answers = Crowd(at: proxy.admin.endpoint, visitors).finished()
            let counts = answers.map { Int($0.text.split(separator: " ").dropFirst().first ?? "") ?? -1 }
            #expect(answers.allSatisfy { $0.status == 200 })
            #expect(counts[..<38].allSatisfy { $0 == 3 }, "\(counts)")
            // Each response is counted by at least one that covers it, and by none twice.
            let shared = counts[38...]
            #expect(shared.allSatisfy { (0...4).contains($0) } && shared.reduce(0, +) >= 6, "\(counts)")
            gate.open()
            #expect(slow.finished()[0].text == "v1")
            #expect(try proxy.get("/0/slow").text == "v2")
            for path in paths { #expect(try proxy.get(path).text == (path.hasPrefix("/40/") ? "1" : "2"), "\(path)") }
        }
    }

    @Test(arguments: ["--all", "http://a/b?c", "/img"]) func `an invalid prefix is refused`(_ argument: String)
        throws
    {
        let run = try Program.run("purge", "--prefix", argument)
        #expect(run.exit == .code(64) && !run.errors.isEmpty, "\(run.everything)")
    }

    @Test func `the purge command without an admin listener fails and gives the reason`() throws {
        try scenario { _, proxy in
            let run = try Program.run(
                "purge", "--config", "@/c.yaml", "--all", files: ["c.yaml": "admin: {listen: \"unix:/nonexistent\"}\n"])
            #expect(run.exit != .code(0) && !run.errors.isEmpty)
            #expect(proxy.exit() == nil)
        }
    }

    @Test func `each line of a purge is a URL`() throws {
        try scenario { origin, proxy in
            origin.on("*") { [.answer(200, "Cache-Control: max-age=60", body: "\($0.number)")] }
            for path in ["/a", "/b", "/c"] { try proxy.get(path) }
            let both = try proxy.purge("http://\(proxy.host)/a\nall")
            #expect(both.status == 400 && both.text.contains("'all' stands alone"), "\(both.text)")
            for line in ["none", "prefix", "prefix /a", "prefix http://\(proxy.host)/a?b"] {
                let wrong = try proxy.purge("\nhttp://\(proxy.host)/a\n\(line)")
                #expect(wrong.status == 400 && wrong.text.contains("line 3"), "\(wrong.text)")
            }
            #expect(try proxy.get("/a").text == "1", "nothing was purged")
            let purge = try proxy.purge("http://\(proxy.host)/a\r\n\nhttp://\(proxy.host)/b\n")
            #expect(purge.status == 200 && purge.text.contains("purged 2 "), "\(purge.text)")
            let texts = try ["/a", "/b", "/c"].map { try proxy.get($0).text }
            #expect(texts == ["2", "2", "1"])
            let (empty, many) = (try proxy.purge("\n"), try proxy.purge(String(repeating: "http://a/\n", count: 101)))
            #expect(empty.status == 400 && many.status == 400)
        }
    }
}
