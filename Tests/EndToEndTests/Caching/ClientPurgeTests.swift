import Glibc
import Testing

/// `PURGE` on the listeners for clients. What each request means is in `ProxyTests`.
@Suite(.scenario) struct ClientPurgeTests {
    private static func from(_ addresses: String) -> Setting {
        .other(section: "purge", key: "methods-from", value: "[\(addresses)]")
    }
    private static let fromHere = from("127.0.0.1")
    private static func trusts(_ proxies: String) -> Setting {
        .other(section: "clients", key: "trusted-proxies", value: "[\(proxies)]")
    }

    private func script(_ origin: ScriptedOrigin) {
        origin.on("*") { request in
            let page = request.target.split(separator: "/").last.map(String.init) ?? "home"
            return [
                .answer(
                    200, "Cache-Control: max-age=600", "X-Magento-Tags: cat_p_\(page),cat_p", "xkey: x_\(page) all",
                    body: "\(request.number)")
            ]
        }
    }

    private static let refused: [([Setting], [String])] = [
        ([], []), ([from("10.0.0.0/8")], []), ([from("unix")], []),
        // Through a TLS terminator on this machine.
        ([fromHere], ["X-Forwarded-For: 192.0.2.1"]), ([fromHere], ["X-Forwarded-For: 127.0.0.1"]),
        ([fromHere], ["Forwarded: for=192.0.2.1"]), ([fromHere], ["X-Real-IP: 192.0.2.1"]),
        // The same where it is trusted: the client that it names counts, not what that client wrote before.
        ([fromHere, trusts("127.0.0.1")], ["X-Forwarded-For: 192.0.2.1"]),
        ([from("10.0.0.1, 127.0.0.1"), trusts("127.0.0.1")], ["X-Forwarded-For: 10.0.0.1, 192.0.2.1"]),
        ([fromHere, trusts("127.0.0.1")], ["X-Forwarded-For: unknown"]),
        // From a page in a browser.
        ([fromHere], ["Origin: http://www.example.com"]), ([fromHere], ["Origin: null"]),
        ([fromHere], ["Sec-Fetch-Site: same-origin"]),
    ]

    @Test(arguments: refused.indices)
    func `a PURGE that is not allowed gets 403, and is not forwarded`(_ index: Int) throws {
        let (settings, fields) = Self.refused[index]
        try scenario(settings: settings + [.accessLog]) { origin, proxy in
            script(origin)
            try proxy.get("/a")
            for more in [[], ["X-Magento-Tags-Pattern: .*"]] {
                let answer = try proxy.send("PURGE", "/a", fields + more)
                #expect(answer.status == 403 && answer.text.hasPrefix("403 Forbidden\n"), "\(answer.text)")
            }
            #expect(try proxy.get("/a").text == "1")
            #expect(origin.requests("/a").map(\.method) == ["GET"])
            #expect(try proxy.metric(.denied) == 2)
            #expect(proxy.diagnostics.contains("may not purge ("))
            try eventually("four lines") { try proxy.accessLog.count == 4 }
            #expect(try proxy.accessLog.count { $0["verdict"]?.string == "refused" } == 2)
        }
    }

    private static let allowed: [([Setting], [String])] = [
        ([fromHere], []), ([from("127.0.0.0/8")], []),
        ([from("10.0.0.1"), trusts("127.0.0.1")], ["X-Forwarded-For: 192.0.2.1, 10.0.0.1"]),
        ([from("10.0.0.1"), trusts("127.0.0.1")], ["X-Forwarded-For: 10.0.0.1", "X-Forwarded-Proto: https"]),
        // The application beside the terminator, which asks this proxy itself.
        ([fromHere, trusts("127.0.0.1")], []),
        // Before the route's own rules, and on a host that is not served.
        ([fromHere, .other(section: "route", key: "deny", value: "[127.0.0.1]")], []),
        ([fromHere, .hosts(["www.example.com"])], []),
    ]

    @Test(arguments: allowed.indices)
    func `a PURGE from an address that is named is answered, and is not forwarded`(_ index: Int) throws {
        let (settings, fields) = Self.allowed[index]
        try scenario(settings: settings + [.accessLog]) { origin, proxy in
            let answer = try proxy.send("PURGE", "/a", fields)
            #expect(answer.status == 200, "\(answer.text)")
            #expect(
                answer.text
                    == "200 OK\npurged 0 stored responses; responses still being fetched will not be stored\n")
            #expect(origin.requests("/a").isEmpty)
            #expect(proxy.diagnostics.contains("purged 0 stored responses: http://\(proxy.host)/a (PURGE)"))
            try eventually("a line") { try proxy.accessLog.count == 1 }
            let line = try proxy.accessLog[0]
            #expect(line["verdict"]?.string == "synthetic" && line["method"]?.string == "PURGE")
        }
    }

    /// The requests of plug-ins, and which of `/`, `/a`, `/b/`, `/b/c` each purges.
    private static let shapes: [(target: String, fields: [String], purged: Set<String>)] = [
        ("/a", [], ["/a"]), ("/b/", [], ["/b/"]),
        ("/a", ["X-Purge-Method: default", "Content-Length: 0"], ["/a"]),
        ("/b/.*", ["X-Purge-Method: regex"], ["/b/", "/b/c"]),
        ("/.*", ["X-Purge-Method: regex"], ["/", "/a", "/b/", "/b/c"]),
        ("/.*", ["Connection: close"], ["/", "/a", "/b/", "/b/c"]),
        ("/", ["X-Magento-Tags-Pattern: ((^|,)cat_p_a(,|$))|((^|,)cat_p_c(,|$))"], ["/a", "/b/c"]),
        ("/", ["X-Magento-Tags-Pattern: ((^|,)cat_p_(,|$))"], []),
        ("/", ["X-Magento-Tags-Pattern: .*"], ["/", "/a", "/b/", "/b/c"]),
        ("/", ["xkey-purge: x_a x_b"], ["/a", "/b/"]), ("/", ["Surrogate-Key: all"], ["/", "/a", "/b/", "/b/c"]),
        ("/", ["X-Purge-Method: tags", "X-Cache-Tags-Pattern: x_a|x_zz"], ["/a"]),
        ("/b/c", ["Cache-Tag: x_a"], ["/a"]), ("/", ["X-Purge-Method: regex"], ["/", "/a", "/b/", "/b/c"]),
    ]

    @Test(arguments: shapes.indices)
    func `the request of a plug-in purges what it means, and nothing else`(_ index: Int) throws {
        let shape = Self.shapes[index]
        try scenario(Self.fromHere) { origin, proxy in
            script(origin)
            let pages = ["/", "/a", "/b/", "/b/c"]
            for page in pages { try proxy.get(page) }
            let other = try proxy.get("/a", "Host: other.example").text
            let answer = try proxy.send("PURGE", shape.target, shape.fields)
            #expect(answer.status == 200 && answer.text.contains("stored response"), "\(answer.text)")
            let isExact = !shape.fields.contains { $0.contains("ag") || $0.contains("key") || $0.contains("Key") }
            if isExact { #expect(answer.text.contains("purged \(shape.purged.count) stored"), "\(answer.text)") }
            for page in pages {
                let isHit = try proxy.get(page).cacheStatus.contains("; hit")
                #expect(isHit == !shape.purged.contains(page), "\(page)")
            }
            if isExact { #expect(try proxy.get("/a", "Host: other.example").text == other) }
            #expect(origin.requests("/a").allSatisfy { $0.method == "GET" })
        }
    }

    @Test(arguments: ["Soft-Purge: 1", "xkey-softpurge: all"])
    func `a soft purge by PURGE leaves a stale response`(_ field: String) throws {
        try scenario(Self.fromHere) { origin, proxy in
            script(origin)
            try proxy.get("/a")
            let answer = try proxy.send("PURGE", "/a", field)
            #expect(answer.text.contains("made 1 stored response stale"), "\(answer.text)")
            #expect(try proxy.get("/a").text == "1")
            try eventually("it is refreshed") { try proxy.get("/a").text == "2" }
        }
    }

    @Test func `a PURGE that is not understood purges nothing and says so`() throws {
        try scenario(Self.fromHere) { origin, proxy in
            script(origin)
            try proxy.get("/a")
            let answer = try proxy.send("PURGE", "/", "X-Magento-Tags-Pattern: cat_p_[0-9]+")
            #expect(answer.status == 400 && answer.text.contains("X-Magento-Tags-Pattern"), "\(answer.text)")
            #expect(try proxy.get("/a").text == "1")
        }
    }

    @Test(.overHTTP1("streams do not wait for one another"))
    func `the requests behind a PURGE wait for it, and the connection stays open`() throws {
        try scenario(Self.fromHere) { origin, proxy in
            script(origin)
            try proxy.get("/a")
            let client = try proxy.connect()
            let (get, purge) = (proxy.request("GET", "/a"), proxy.request("PURGE", "/.*"))
            try client.send(get + purge + get + purge + purge + get)
            var texts: [String] = []
            for _ in 0..<6 {
                let answer = try client.answer()
                #expect(answer.status == 200 && answer["connection"] == nil)
                texts.append(answer.text.split(separator: ";").first.map(String.init) ?? "")
            }
            #expect(
                texts == [
                    "1", "200 OK\npurged 1 stored response", "2", "200 OK\npurged 1 stored response",
                    "200 OK\npurged 0 stored responses", "3",
                ])
        }
    }

    @Test(.overHTTP1("it is about the field Connection"))
    func `a PURGE with content is answered, and its connection closes`() throws {
        try scenario(Self.fromHere) { origin, proxy in
            let answer = try proxy.send("PURGE", "/a", body: "something")
            #expect(answer.status == 200 && answer["connection"] == "close")
        }
    }

    @Test func `a client that leaves does not stop its purge, and harms nobody`() throws {
        try scenario(Self.fromHere, .workers(2)) { origin, proxy in
            script(origin)
            for round in 1...20 {
                #expect(try proxy.get("/a").text == "\(round)")
                let client = try proxy.connect()
                try client.send(proxy.request("PURGE", "/.*"))
                if round % 2 == 0 { client.reset() } else { client.finishSending() }
                try eventually("it is purged") {
                    proxy.diagnostics.split(separator: "\n").count { $0.contains("purged 1 stored") } == round
                }
            }
            #expect(try proxy.get("/a").text == "21")
        }
    }

    @Test func `a PURGE reaches the program before this one, which refuses one itself`() throws {
        try scenario(Self.fromHere) { origin, proxy in
            script(origin)
            func stayingClient() throws -> Conversation {
                while true {
                    let client = try proxy.connect()
                    try client.send(proxy.request("GET", "/a"))
                    // Otherwise the one before it took the client from its queue, as one of its last.
                    if try client.answer()["connection"] == nil { return client }
                }
            }
            let (reader, purger) = (try stayingClient(), try stayingClient())
            try proxy.upgrade()
            try purger.send(proxy.request("PURGE", "/a"))
            let refused = try purger.answer()
            #expect(refused.status == 503 && refused.text.contains("send the purge again"), "\(refused.text)")
            #expect(refused["connection"] == "close")
            let stored = try proxy.get("/a").text
            #expect(try proxy.send("PURGE", "/a").text.contains("purged 1 stored response"))
            #expect(proxy.diagnostics.contains("purged for the new program"))
            try reader.send(proxy.request("GET", "/a"))
            let after = try reader.answer().text
            #expect(after != "1" && after != stored, "not from before the purge: \(after)")
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test(.overHTTP1("half a head is no frame")) func `a PURGE is answered while the program drains`() throws {
        try scenario(Self.fromHere, .drainTimeout(.seconds(10))) { origin, proxy in
            let gate = Gate()
            origin.on("/slow") { _ in [.gate(gate), .answer(200, body: "slow")] }
            let slow = proxy.crowd(1, get: "/slow")
            try eventually("it is asked for") { origin.count("/slow") == 1 }
            let client = try proxy.connect()
            try client.send(String(proxy.request("PURGE", "/a").dropLast()))
            try eventually("it is read") { try proxy.metric(.openClients) == 2 }
            proxy.terminate()
            try eventually("it drains") { proxy.diagnostics.contains("no new connections") }
            try client.send("\r\n")
            let answer = try client.answer()
            #expect(answer.status == 200 && answer["connection"] == "close")
            gate.open()
            #expect(slow.finished()[0].text == "slow")
            #expect(try proxy.exited() == .code(0))
        }
    }

    @Test func `a reload changes who may send PURGE`() throws {
        try scenario { origin, proxy in
            #expect(try proxy.send("PURGE", "/a").status == 403)
            try proxy.rewriteConfiguration(upstream: origin.url, Self.fromHere)
            #expect(try proxy.command("reload").exit == .code(0))
            #expect(try proxy.send("PURGE", "/a").status == 200)
        }
    }
}
