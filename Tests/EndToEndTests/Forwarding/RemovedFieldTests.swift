import Testing

/// A field of a client that its origin does not get, for safety: the operator is told of it, once.
@Suite(.scenario) struct RemovedFieldTests {
    /// HTTP/2 has names in lower case.
    private static func notices(_ proxy: Program, of name: String) -> [Substring] {
        proxy.diagnostics.split(separator: "\n").filter { $0.lowercased().contains(name.lowercased()) }
    }

    /// Whatever is told is told before the answer.
    @Test(.clientsInTheClear("TLS ends in front of the program"))
    func `an untrusted TLS proxy in front is logged once`() throws {
        try scenario(.workers(2)) { origin, proxy in
            origin.on("*") { request in
                request["x-forwarded-proto"] == "https"
                    ? [.answer(200, body: "secure")]
                    : [.answer(301, "Location: https://\(proxy.host)/", "Cache-Control: no-store")]
            }
            for _ in 0..<10 {
                let terminator = try proxy.connect()
                for _ in 0..<100 {
                    try terminator.send(
                        proxy.request("GET", "/", ["X-Forwarded-Proto: https", "X-Forwarded-For: 192.0.2.1"]))
                    let answer = try terminator.answer()
                    #expect(answer.status == 301)
                }
            }
            let lines = Self.notices(proxy, of: "X-Forwarded-Proto")
            #expect(lines.count == 1, "\(lines)")
            #expect(
                lines.allSatisfy {
                    $0.contains("notice") && $0.contains(" 127.0.0.1 ") && $0.contains("clients.trusted-proxies")
                        && $0.contains("127.0.0.0/24")
                })
            // It is told of each field once.
            for _ in 0..<3 {
                try proxy.send("POST", "/", "X-Forwarded-Proto: https", "X-Real-IP: 192.0.2.1", body: "x")
            }
            #expect(Self.notices(proxy, of: "X-Forwarded-Proto").count == 1)
            #expect(Self.notices(proxy, of: "X-Real-IP").count == 1)
        }
    }

    @Test(arguments: [
        ("X-Forwarded-Host: other.example", "key.headers"), ("Forwarded: for=192.0.2.1", "key.headers"),
        ("X-Forwarded-Prefix: /a", "key.headers"), ("X-HTTP-Method-Override: PUT", "key.headers"),
        ("X-Real-IP: 192.0.2.1", "clients.trusted-proxies"), ("CF-Connecting-IP: 192.0.2.1", "clients.trusted-proxies"),
        ("X_Tenant: 7", "forwarding.odd-field-names"), ("Proxy: http://192.0.2.1/", "key.headers"),
    ])
    func `each removed field is logged with the key that lets it through`(field: String, key: String) throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            let name = String(field.prefix { $0 != ":" })
            for _ in 0..<3 { try proxy.get("/x", field) }
            let value = String(field.dropFirst(name.count + 2))
            #expect(origin.requests("/x").allSatisfy { $0[name.lowercased()] ?? "" != value })
            let lines = Self.notices(proxy, of: name)
            #expect(lines.count == 1 && lines.allSatisfy { $0.contains(key) }, "\(lines)")
        }
    }

    @Test(.clientsInTheClear("the scheme is http"))
    func `a field that is not removed, or equals the proxy's own, is not logged`() throws {
        try scenario(
            .other(section: "clients", key: "trusted-proxies", value: "[127.0.0.1]"),
            .other(section: "route", key: "key", value: "{headers: [x-forwarded-prefix]}")
        ) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            try proxy.get(
                "/x", "X-Forwarded-Proto: https", "X-Forwarded-Host: \(proxy.host)", "X-Forwarded-For: 192.0.2.1",
                "X-Real-IP: 192.0.2.1", "X-Forwarded-Prefix: /a", "X-Request-Id: 7", "Connection: X-Forwarded-Port",
                "X-Forwarded-Port: 1")
            #expect(!proxy.diagnostics.contains("not forwarded"))
        }
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            try proxy.get("/x", "X-Forwarded-Proto: http", "X-Forwarded-Host: \(proxy.host)")
            // Hits are not looked into.
            let hit = try proxy.get("/x", "X-Real-IP: 192.0.2.1", "X-Forwarded-Proto: https")
            #expect(hit.cacheStatus.contains("hit"))
            #expect(!proxy.diagnostics.contains("not forwarded"))
        }
    }

    @Test func `a removed trailer field is logged too`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.requestBody, .answer(200, body: "x")] }
            for _ in 0..<3 {
                let client = try proxy.connect()
                try client.send(
                    proxy.request("POST", "/x", ["Transfer-Encoding: chunked"])
                        + "1\r\nx\r\n0\r\nX-Checksum: 7\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
                #expect(try client.answer().text == "x")
            }
            #expect(Self.notices(proxy, of: "X-Forwarded-For").count == 1)
            #expect(Self.notices(proxy, of: "X-Checksum").isEmpty)
        }
    }

    @Test func `a removed field of a client on a Unix socket is logged too`() throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let path = "\(folder)/s"
        try scenario(arguments: ["--listen", "127.0.0.1:0", "--listen", "unix:\(path)"]) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            for _ in 0..<3 {
                try Address(endpoint: .unix(path)).send("GET", "/x", "Host: a.example", "X-Forwarded-Proto: https")
            }
            let lines = Self.notices(proxy, of: "X-Forwarded-Proto")
            #expect(lines.count == 1 && lines.allSatisfy { $0.contains("Unix socket") }, "\(lines)")
        }
    }
}
