import CertificateMaking
import Testing

/// Programs of others that speak HTTP/2 over TLS.
@Suite(.scenario) struct RealHTTP2ClientTests {
    private static let curl = [
        "curl", "-sS", "--no-progress-meter", "--http2", "--parallel", "--parallel-max", "40", "--max-time", "60",
    ]

    private static let identities = [TestIdentity.authority.identity(for: "localhost", "127.0.0.1")]

    @Test func `no request of curl fails while three upgrades take place`() throws {
        try SecureSite.run(.workers(2), identities: Self.identities) { site in
            site.origin.on("/slow") { _ in
                [.wait(.milliseconds(2)), .answer(200, "Cache-Control: no-store", body: "x")]
            }
            let words =
                Self.curl + [
                    "--cacert", "\(site.folder)/authority.pem", "-o", "/dev/null", "-w",
                    "%{http_code} %{http_version}\\n",
                ]
            let (count, base) = (4000, "https://localhost:\(site.port)")
            let output = ["x", "slow"].map { "\(site.folder)/\($0)" }
            let children = try zip(["x", "slow"], output).map { path, output in
                try Spawn.start(
                    "/usr/bin/env", words + ["\(base)/\(path)?[1-\(count)]"], output: output, errors: output + ".errors"
                )
            }
            for round in 1...3 {
                try eventually("some are served", within: .seconds(60)) {
                    output.allSatisfy {
                        System.contents(of: $0).utf8.count >= round * count / 5 * "200 2\n".utf8.count
                    }
                }
                try site.proxy.upgrade()
            }
            for (child, output) in zip(children, output) {
                var exit: Spawn.Exit?
                try eventually("curl ends", within: .seconds(60)) {
                    exit = exit ?? Spawn.poll(child)
                    return exit != nil
                }
                let (told, errors) = (System.contents(of: output), System.contents(of: output + ".errors"))
                #expect(exit == .code(0) && errors.isEmpty, "\(errors.prefix(500))")
                #expect(told.split(separator: "\n").count { $0 == "200 2" } == count)
            }
        }
    }

    @Test func `what curl has asked for at SIGTERM comes whole`() throws {
        try SecureSite.run(.workers(2), identities: Self.identities) { site in
            let gate = Gate()
            site.origin.on("/slow") { _ in
                [.head(200, "Content-Length: 100000", "Cache-Control: no-store"), .pattern(0..<50_000), .gate(gate)]
                    + [.pattern(50_000..<100_000)]
            }
            let output = "\(site.folder)/told"
            let child = try Spawn.start(
                "/usr/bin/env",
                Self.curl + [
                    "--cacert", "\(site.folder)/authority.pem", "-o", "/dev/null",
                    "-w", "%{http_code} %{http_version} %{size_download}\\n",
                    "https://localhost:\(site.port)/slow?[1-30]",
                ], output: output, errors: output + ".errors")
            try eventually("the origin has all") { site.origin.count("/slow") == 30 }
            site.proxy.terminate()
            try eventually("it drains") { site.proxy.diagnostics.contains("no new connections") }
            gate.open()
            try eventually("curl ends", within: .seconds(30)) { Spawn.poll(child) != nil }
            let lines = System.contents(of: output).split(separator: "\n")
            #expect(lines.count { $0 == "200 2 100000" } == 30, "\(lines)")
            #expect(try site.proxy.exited() == .code(0))
        }
    }

    private static let browser = "/usr/bin/chromium-headless-shell"

    @Test(.enabled(if: System.isExecutable(browser), "`make browser` installs it"))
    func `Chromium loads a page of a hundred images over one connection`() throws {
        try SecureSite.run(.accessLog, identities: Self.identities) { site in
            // One pixel.
            let image: [UInt8] =
                [
                    0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x2C, 0, 0,
                    0, 0,
                ]
                + [1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B]
            let images = (0..<100).map { "<img src=/image/\($0) onload=loaded++>" }.joined()
            let page =
                "<script>var loaded = 0; onload = () => document.body.append(`loaded ${loaded} of 100`)</script>"
                + "<body>\(images)</body>"
            site.origin.on("/page") { _ in
                [.answer(200, "Cache-Control: max-age=60", "Content-Type: text/html", body: page)]
            }
            site.origin.on("*") { _ in
                [
                    .head(
                        200, "Cache-Control: max-age=60", "Content-Type: image/gif", "Content-Length: \(image.count)"),
                    .payload(image),
                ]
            }
            // The hash of the key that it is to believe, whoever has signed the certificate.
            let key = "openssl x509 -in \(site.folder)/site0.pem -pubkey -noout | openssl pkey -pubin -outform der"
            let hash = try Command.run(["sh", "-c", "\(key) | openssl dgst -sha256 -binary | base64 | tr -d '\\n'"])
            let before = try site.proxy.metric(.openedClients)
            let shown = try Command.run(
                [
                    Self.browser, "--no-sandbox", "--disable-gpu", "--user-data-dir=\(site.folder)/profile",
                    "--ignore-certificate-errors-spki-list=\(hash.output)", "--dump-dom",
                    "https://localhost:\(site.port)/page",
                ], within: .seconds(90))
            #expect(shown.output.contains("loaded 100 of 100"), "\(shown.everything.suffix(500))")
            let opened = try site.proxy.metric(.openedClients) - before
            #expect(opened == 1)
            try eventually("all are logged") {
                try site.proxy.accessLog.count { $0["target"]?.string?.hasPrefix("/image/") == true } == 100
            }
            let versions = try Set(site.proxy.accessLog.compactMap { $0["protocol"]?.string })
            #expect(versions == ["HTTP/2.0"])
            for failure in ["reset", "error"] where site.proxy.diagnostics.contains(failure) {
                Issue.record("\(site.proxy.diagnostics)")
            }
        }
    }
}
