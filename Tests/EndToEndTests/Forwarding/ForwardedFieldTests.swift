import Glibc
import Testing

/// What a proxy takes away, adds and leaves alone (RFC 9110 §7.6).
@Suite(.scenario) struct ForwardedFieldTests {
    @Test func `hop-by-hop fields of a request are not forwarded`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            try proxy.get(
                "/x", "Connection: keep-alive, X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5",
                "Proxy-Connection: keep-alive",
                "Proxy-Authorization: Basic eA==", "TE: gzip", "Trailer: X-T", "X-Stays: 1")
            let request = origin.requests("/x")[0]
            for name in ["x-hop", "keep-alive", "proxy-connection", "te", "upgrade"] {
                #expect(request[name] == nil, "\(name)")
            }
            #expect(request["x-stays"] == "1")
            #expect(request["connection"].map { !$0.lowercased().contains("x-hop") } ?? true)
        }
    }

    @Test func `hop-by-hop fields of a response are not forwarded`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in
                [
                    .answer(
                        200, "Cache-Control: max-age=60", "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: timeout=5",
                        "Proxy-Connection: close", "X-Stays: 1", body: "x")
                ]
            }
            for answer in try [proxy.get("/x"), proxy.get("/x")] {
                for name in ["x-hop", "keep-alive", "proxy-connection"] { #expect(answer[name] == nil, "\(name)") }
                #expect(answer["x-stays"] == "1")
            }
        }
    }

    @Test func `an origin with its own name gets it as Host, and the requested host in a field`()
        throws
    {
        try scenario(.other(section: "upstream", key: "host", value: "Mirror.Example:80")) { origin, proxy in
            origin.on("*") { [.answer(200, "Cache-Control: max-age=60", body: $0["host"] ?? "")] }
            let first = try proxy.get("/x")
            let second = try proxy.get("/x")
            let other = try proxy.send("GET", "/x", "Host: other.example")
            let posted = try proxy.send("POST", "/x", "Host: other.example", body: "y")
            #expect([first, second, other, posted].map(\.text) == Array(repeating: "mirror.example", count: 4))
            // What is stored stays apart by the host that clients asked for.
            #expect(second["cache-status"]?.contains("hit") == true && other["cache-status"]?.contains("hit") == false)
            #expect(
                origin.requests("/x").map { $0["x-forwarded-host"] } == [proxy.host, "other.example", "other.example"])
        }
    }

    @Test(arguments: ["X-Real-IP", "True-Client-IP", "CF-Connecting-IP"])
    func `only trusted proxies can name the client of a request`(name: String) throws {
        for (trusted, seen) in [("[]", nil), ("[203.0.113.0/24]", nil), ("[127.0.0.1]", "192.0.2.66")] {
            try scenario(.other(section: "clients", key: "trusted-proxies", value: trusted)) { origin, proxy in
                origin.on("*") {
                    [.answer(200, "Cache-Control: max-age=60", body: "for \($0[name.lowercased()] ?? "nobody")")]
                }
                let page = try proxy.get("/x", "\(name): 192.0.2.66")
                #expect(page.text == "for \(seen ?? "nobody")")
                try proxy.send("POST", "/y", "\(name): 192.0.2.66", body: "y")
                #expect(origin.requests("/y").map { $0[name.lowercased()] } == [seen])
            }
        }
    }

    @Test(.clientsInTheClear("the scheme is told by a proxy in front"))
    func `a trusted proxy names the scheme, and each scheme has its own page`() throws {
        let trust = Setting.other(section: "clients", key: "trusted-proxies", value: "[127.0.0.1]")
        try scenario(trust) { origin, proxy in
            origin.on("*") { request in
                guard request.method == "GET" else { return [.answer(200, "Location: https://\(proxy.host)/x")] }
                return [
                    .answer(
                        200, "Cache-Control: max-age=600", "Vary: X-Forwarded-Proto",
                        body: "\(request["x-forwarded-proto"] ?? "none") \(request.number)")
                ]
            }
            func page(_ said: String?) throws -> String {
                guard let said else { return try proxy.get("/x").text }
                return try proxy.get("/x", "X-Forwarded-Proto: \(said)").text
            }
            let first = try [page("https"), page(nil), page("HTTPS"), page("http"), page("wss")]
            #expect(first == ["https 1", "http 2", "https 1", "http 2", "https 1"])
            // What an unsafe request's response names is of the scheme it names.
            try proxy.send("POST", "/form", "X-Forwarded-Proto: https", body: "y")
            let changed = try [page("https"), page(nil)]
            #expect(changed == ["https 3", "http 2"])
            // A purge means both.
            let purged = try proxy.purge("http://\(proxy.host)/x")
            #expect(purged.text.hasPrefix("purged 2 stored"), "\(purged.text)")
            let anew = try page("https")
            #expect(anew == "https 4")
            let below = try proxy.purge("prefix https://\(proxy.host)/x")
            #expect(below.text.hasPrefix("purged 1 stored"), "\(below.text)")

            try proxy.rewriteConfiguration(upstream: origin.url)
            proxy.signal(SIGHUP)
            try eventually("nobody is believed any more") { try page("https").hasPrefix("http ") }
        }
    }

    /// In a crowd heads in the same words are not looked at again.
    @Test(.clientsInTheClear("the scheme is told by a proxy in front"))
    func `waiters keep the scheme that a trusted proxy named, also when they request again`() throws {
        let trust = Setting.other(section: "clients", key: "trusted-proxies", value: "[127.0.0.1]")
        try scenario(trust, .workers(1)) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                let isFirst = request.number == 1
                return (isFirst ? [.gate(gate)] : []) + [
                    .answer(
                        200, "Cache-Control: \(isFirst ? "private" : "max-age=60")",
                        body: "for \(request["x-forwarded-proto"] ?? "nobody")")
                ]
            }
            let clients = try (0..<6).map { _ in try proxy.connect() }
            try proxy.whileStopped {
                for client in clients { try client.send(proxy.request("GET", "/x", ["X-Forwarded-Proto: https"])) }
            }
            try proxy.joined(6)
            gate.open()
            let texts = try clients.map { try $0.answer().text }
            #expect(texts == Array(repeating: "for https", count: 6))
            #expect(origin.requests("/x").allSatisfy { $0["x-forwarded-proto"] == "https" })
            #expect(try proxy.get("/x").text == "for http")
        }
    }

    @Test func `a proxy that is no longer trusted after a reload names no client, even on old connections`() throws {
        try scenario(.other(section: "clients", key: "trusted-proxies", value: "[127.0.0.1]")) { origin, proxy in
            origin.on("*") {
                [
                    .answer(
                        200, "Cache-Control: max-age=60", "Vary: X-Real-IP", body: "for \($0["x-real-ip"] ?? "nobody")")
                ]
            }
            let client = try proxy.connect()
            func page(_ path: String) throws -> String {
                try client.send(proxy.request("GET", path, ["X-Real-IP: 192.0.2.66"]))
                return try client.answer().text
            }
            let before = try page("/x")
            #expect(before == "for 192.0.2.66")
            try proxy.rewriteConfiguration(upstream: origin.url)
            proxy.signal(SIGHUP)
            var round = 0
            try eventually("it names nobody") {
                round += 1
                return try page("/\(round)") == "for nobody"
            }
        }
    }

    @Test(.overHTTP1("names of HTTP/2 are in lower case"))
    func `all other fields are forwarded byte for byte and in order`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in
                [
                    .answer(
                        200, "Cache-Control: max-age=60", "X-One: a,  b", "x-oNE: c", "X-Empty:", "X-Latin: caf\u{e9}",
                        body: "x")
                ]
            }
            for answer in try [proxy.get("/x", "X-Ask: 1", "x-ASK: 2;q=\"a, b\""), proxy.get("/x")] {
                #expect(answer.head?.all("x-one") == ["a,  b", "c"])
                #expect(answer.head?.all("x-empty") == [""])
                #expect(answer["x-latin"] == "caf\u{e9}")
                #expect(answer.head?.text.contains("x-oNE: c") ?? false)
            }
            #expect(origin.requests("/x")[0].head.all("x-ask") == ["1", "2;q=\"a, b\""])
        }
    }

    @Test func `fields that the operator turns off are not sent`() throws {
        let silent: [Setting] = [
            .other(section: "forwarding", key: "via", value: "off"),
            .other(section: "forwarding", key: "cache-status", value: "false"),
            .other(section: "forwarding", key: "proxy-status", value: "false"),
        ]
        try scenario(silent[0], silent[1], silent[2]) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            origin.on("/gone") { _ in [.close] }
            for answer in try [proxy.get("/x"), proxy.get("/x"), proxy.get("/gone")] {
                for name in ["via", "cache-status", "proxy-status"] {
                    #expect(answer[name] == nil, "\(name) of \(answer.status)")
                }
            }
            #expect(origin.requests("/x").map { $0["via"] } == [nil])
            #expect(try proxy.get("/gone").status == 502)
        }
    }

    @Test func `the name of the proxy is the configured one`() throws {
        try scenario(.other(section: "forwarding", key: "via", value: "edge-1")) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            origin.on("/gone") { _ in [.close] }
            let answer = try proxy.get("/x"), failure = try proxy.get("/gone")
            #expect(answer["via"] == "1.1 edge-1" && answer.cacheStatus.hasPrefix("edge-1; "))
            #expect(failure["proxy-status"]?.hasPrefix("edge-1; ") ?? false)
            #expect(origin.requests("/x").map { $0["via"] } == ["\(Transport.current.version) edge-1"])
        }
    }

    @Test(.clientsInTheClear("the scheme is http")) func `the origin gets the client's address, scheme and host`()
        throws
    {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            try proxy.get("/x", "Host: www.example.com")
            let request = origin.requests("/x")[0]
            #expect(request["host"] == "www.example.com")
            #expect(request["x-forwarded-for"] == "127.0.0.1")
            #expect(request["x-forwarded-proto"] == "http")
            #expect(request["x-forwarded-host"] == "www.example.com")
            #expect(request["via"]?.contains("\(Transport.current.version) coalesced") ?? false)
        }
    }

    @Test func `Via and X-Forwarded-For are extended`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Via: 1.0 inner", body: "x")] }
            let answer = try proxy.get("/x", "Via: 1.0 outer", "X-Forwarded-For: 192.0.2.1")
            #expect(answer["via"] == "1.0 inner, 1.1 coalesced")
            #expect(origin.requests("/x")[0]["via"] == "1.0 outer, \(Transport.current.version) coalesced")
            #expect(origin.requests("/x")[0]["x-forwarded-for"]?.hasSuffix("127.0.0.1") ?? false)
        }
    }

    @Test func `the path of a client's Unix socket is not sent to an origin`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("*") { [.answer(200, "Cache-Control: max-age=60", body: $0.target)] }
        let folder = try System.makeTemporaryFolder()
        let program = try Program(
            folder: folder,
            [
                "--listen", "unix:\(folder)/s", "--upstream", origin.url, "--workers", "1", "--access-log",
                "\(folder)/log",
            ])
        defer { program.stop() }
        let place = Address(endpoint: .unix("\(folder)/s"))
        try eventually("it listens") { program.diagnostics.contains("listening on unix:") }
        // A path may have any bytes but NUL, and may look like an address.
        for inner in ["", "/evil HTTP"] { #expect(unsafe mkdir("\(folder)/x\r\n\r\nGET \(inner)", 0o700) == 0) }
        let names = ["\(folder)/x\r\n\r\nGET /evil HTTP/1.1\r\nHost: v", nil]
        for (number, name) in names.enumerated() {
            let client = try Conversation(with: place.endpoint, as: name)
            try client.send(place.request("GET", "/none/\(number)", ["Host: h"]))
            #expect(try client.answer().text == "/none/\(number)")
            try client.send(place.request("GET", "/some/\(number)", ["Host: h", "X-Forwarded-For: 192.0.2.1"]))
            #expect(try client.answer().text == "/some/\(number)")
        }
        #expect(origin.count("/evil") == 0 && origin.total == 4)
        for number in names.indices {
            let sent = [origin.requests("/none/\(number)"), origin.requests("/some/\(number)")].map {
                $0.map { $0.head.all("x-forwarded-for") }
            }
            #expect(sent == [[[]], [["192.0.2.1"]]])
        }
        program.terminate()
        #expect(try program.exited() == .code(0))
        let clients = System.contents(of: "\(folder)/log").split(separator: "\n").map { $0.prefix { $0 != " " } }
        #expect(
            clients.count == 4 && clients.allSatisfy { $0 == "-" || $0.hasPrefix("\(folder)/x\\x0d\\x0a") },
            "\(clients)")
    }

    @Test(.clientsInTheClear("the port is that of http")) func `a client cannot put its host into shared responses`()
        throws
    {
        try scenario { origin, proxy in
            origin.on("/x") {
                [
                    .answer(
                        200, "Cache-Control: max-age=60",
                        body: "\($0["x-forwarded-proto"] ?? "")://\($0["x-forwarded-host"] ?? "")")
                ]
            }
            let usual = "http://\(proxy.host)"
            let first = try proxy.get(
                "/x", "X-Forwarded-Host: evil.example", "X-Forwarded-Proto: https", "Forwarded: host=evil.example",
                "X_Forwarded_Host: evil.example", "X-Forwarded-Port: 1", "X-Forwarded: host=evil.example",
                "X-Host: evil.example",
                "X-HTTP-Method-Override: DELETE", "Front-End-Https: on")
            let second = try proxy.get("/x")
            #expect(first.text == usual && second.text == usual)
            for name in [
                "forwarded", "x_forwarded_host", "x-forwarded-port", "x-forwarded", "x-host", "x-http-method-override",
                "front-end-https",
            ] { #expect(origin.requests("/x")[0][name] == nil, "\(name)") }
        }
    }

    @Test(.clientsInTheClear("the scheme is told by a proxy in front"))
    func `a scheme field in the key is forwarded, and each scheme has its own response`() throws {
        try scenario(.other(section: "route", key: "key", value: "{headers: [x-forwarded-proto]}")) { origin, proxy in
            origin.on("/x") { [.answer(200, "Cache-Control: max-age=60", body: $0["x-forwarded-proto"] ?? "")] }
            let odd = try proxy.get("/x", "X-Forwarded-Proto: https", "Connection: X-Forwarded-Proto")
            #expect(odd.text == "http", "what is for us alone is in no key")
            for _ in 1...2 {
                let (safe, plain) = (try proxy.get("/x", "X-Forwarded-Proto: https"), try proxy.get("/x"))
                #expect(safe.text == "https" && plain.text == "http")
            }
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `trailers reach a client that asks for them`() throws {
        try scenario { origin, proxy in
            origin.on("/t") { _ in
                [.head(200, "Transfer-Encoding: chunked", "Trailer: X-Sum"), .chunk("body"), .lastChunk("X-Sum: 42")]
            }
            let answer = try proxy.get("/t", "TE: trailers", "Connection: TE")
            #expect(answer.text == "body" && answer.isClean)
            #expect(answer.body.trailers.contains("X-Sum: 42"))
        }
    }

    @Test(.clientsInTheClear("the port is that of http"))
    func `the origin gets the host as in the key, whatever spelling the client chose`() throws {
        try scenario { origin, proxy in
            origin.on("/x") {
                [
                    .answer(
                        302, "Cache-Control: max-age=60",
                        "Location: https://\($0["host"] ?? "")/\($0["x-forwarded-host"] ?? "")")
                ]
            }
            let answers = try ["Shop.test:080", "shop.test", "shop.test:"].map { try proxy.get("/x", "Host: \($0)") }
            #expect(answers.map { $0["location"] } == Array(repeating: "https://shop.test/shop.test", count: 3))
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a field that an origin may confuse with another is not forwarded`() throws {
        try scenario { origin, proxy in
            // As by CGI and its like.
            origin.on("/v") {
                [
                    .answer(
                        200, "Cache-Control: max-age=60", "Vary: Accept-Language",
                        body: $0["accept_language"] ?? $0["accept-language"] ?? "none")
                ]
            }
            let odd = try proxy.get("/v", "Accept_Language: evil", "X.Tenant: a", "X-Tenant-2: b"),
                usual = try proxy.get("/v")
            #expect(odd.text == "none" && usual.text == "none" && origin.count("/v") == 1)
            #expect(origin.requests("/v")[0]["x.tenant"] == nil && origin.requests("/v")[0]["x-tenant-2"] == "b")
        }
    }

    @Test func `a response to a request with confusable fields serves only requests with the same fields`() throws {
        try scenario(
            .other(section: "forwarding", key: "odd-field-names", value: "true"),
            .other(section: "route", key: "key", value: "{headers: [x-tenant]}")
        ) { origin, proxy in
            origin.on("/v") {
                [
                    .answer(
                        200, "Cache-Control: max-age=60", "Vary: Accept-Language",
                        body: $0["accept_language"] ?? $0["accept-language"] ?? "none")
                ]
            }
            origin.on("/k") {
                [.answer(200, "Cache-Control: max-age=60", body: $0["x_tenant"] ?? $0["x-tenant"] ?? "none")]
            }
            for (path, name, alias) in [("/v", "Accept-Language", "Accept_Language"), ("/k", "X-Tenant", "X_Tenant")] {
                for _ in 1...2 {
                    let texts = try [
                        "\(alias): evil", "A: 1", "\(name): de", "\(name): de\r\n\(alias): evil", "\(name): evil",
                    ].map { try proxy.get(path, $0).text }
                    #expect(texts == ["evil", "none", "de", "evil", "evil"])
                }
                #expect(origin.count(path) == 5)
            }
        }
    }
}
