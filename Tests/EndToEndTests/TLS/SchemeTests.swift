import Testing

/// What follows from the scheme of a connection.
@Suite(.scenario) struct SchemeTests {
    @Test func `the origin is told the scheme, whatever the client says`() throws {
        try SecureSite.run { site in
            site.origin.on("/p") { _ in [.answer(200, "Cache-Control: no-store", body: "hello")] }
            for field in ["X-A: 1", "X-Forwarded-Proto: http", "X-Forwarded-Proto: ftp"] {
                let answer = try site.get("/p", field)
                #expect(answer.text == "hello")
            }
            for field in ["X-A: 1", "X-Forwarded-Proto: https"] {
                let answer = try site.plain.get("/p", field)
                #expect(answer.text == "hello")
            }
            let told = site.origin.requests("/p").map { $0["x-forwarded-proto"] }
            #expect(told == ["https", "https", "https", "http", "http"])
        }
    }

    @Test func `a stored response of one scheme answers no request of the other`() throws {
        try SecureSite.run { site in
            site.origin.on("/s") { request in
                [.answer(200, "Cache-Control: max-age=600", body: request["x-forwarded-proto"] ?? "none")]
            }
            for _ in 0..<2 {
                let (secure, plain) = try (site.get("/s", host: "a.test"), site.plain.get("/s", "Host: a.test"))
                #expect(secure.text == "https" && plain.text == "http")
            }
            #expect(site.origin.count("/s") == 2)
        }
    }

    @Test func `a purge of a URL removes the responses of both schemes`() throws {
        try SecureSite.run { site in
            func ask() throws {
                _ = try site.get("/x", host: "a.test")
                _ = try site.plain.get("/x", "Host: a.test")
            }
            try ask()
            let purge = try Program.run("purge", "--admin", "unix:\(site.proxy.folder)/admin.sock", "https://a.test/x")
            #expect(purge.exit == .code(0))
            try ask()
            #expect(site.origin.count("/x") == 4)
        }
    }

    @Test func `a URL in a request line names the scheme of its connection`() throws {
        try SecureSite.run { site in
            func status(_ place: Conversation, _ target: String) throws -> Int {
                try place.send(site.proxy.request("GET", target, ["Host: a.test"]))
                return try place.answer().status
            }
            let secure = try ["https", "http"].map { try status(site.connect(), "\($0)://a.test/x") }
            #expect(secure == [200, 421])
            let plain = try ["http", "https"].map { try status(site.plain.connect(), "\($0)://a.test/x") }
            #expect(plain == [200, 421])
        }
    }

    @Test func `a redirect to TLS takes two lines, and sends nobody in a circle`() throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "hello")] }
        try TestIdentity.write(TestIdentity.ofProgram, to: "\(folder)/site")
        let port = try Socket.freePort()
        let file = """
            listen: ["https://127.0.0.1:0", "127.0.0.1:\(port)"]
            tls: {certificates: [{certificate: \(folder)/site.pem, key: \(folder)/site.key}]}
            upstreams: [{name: origin, servers: ["\(origin.url)"]}]
            routes:
              - {path: /scheme, redirect: {to: "${scheme}://other.test${target}"}}
              - {scheme: http, redirect: {to: "https://${host}${target}"}}
              - {upstream: origin}

            """
        let proxy = try Program.serve(file: file, listeners: 2)
        defer { proxy.stop() }
        let plain = Address(endpoint: .tcp(port))
        let redirect = try plain.get("/x?a=1", "Host: a.test")
        #expect(redirect.status == 308)
        #expect(redirect["location"] == "https://a.test/x?a=1")
        #expect(try proxy.get("/x?a=1", "Host: a.test").text == "hello")
        #expect(try proxy.get("/scheme", "Host: a.test")["location"] == "https://other.test/scheme")
        #expect(try plain.get("/scheme", "Host: a.test")["location"] == "http://other.test/scheme")
    }

    @Test func `a PROXY header in front of the handshake names the client`() throws {
        let trusts = Setting.other(section: "clients", key: "trusted-proxies", value: "[127.0.0.1]")
        let header = "PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\n"
        try SecureSite.run(trusts, .accessLog, listener: ", proxy-protocol: true") { site in
            let client = try site.raw.connect()
            try client.send(header)
            client.secure()
            try client.send(site.proxy.request("GET", "/x"))
            #expect(try client.answer().text == "hello")
            // In one piece with the hello.
            let end = TLSEnd(.client)
            _ = end.shake()
            let other = try site.raw.connect()
            try other.send(Array(header.utf8) + end.takeOutgoing())
            #expect(try other.bytes(1).first == 0x16)
            // Without it there is no handshake.
            let refused = try site.raw.connect()
            refused.secure()
            #expect(throws: (any Error).self) {
                try refused.send(site.proxy.request("GET", "/x"))
                _ = try refused.answer()
            }
            #expect(site.origin.requests("/x")[0]["x-forwarded-for"] == "203.0.113.9")
            #expect(site.origin.requests("/x")[0]["x-forwarded-proto"] == "https")
            try eventually("a line") { try site.proxy.accessLog.first?["client"]?.string == "203.0.113.9" }
        }
    }
}
