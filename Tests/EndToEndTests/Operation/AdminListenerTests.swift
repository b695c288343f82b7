import Glibc
import Testing

@Suite(.scenario) struct AdminListenerTests {
    @Test func `the admin listener reports that the program is healthy and ready`() throws {
        try scenario { _, proxy in
            for (page, status) in [("/healthz", 200), ("/readyz", 200), ("/nothing", 404)] {
                let answer = try proxy.admin.get(page)
                #expect(answer.status == status, "\(page)")
            }
        }
    }

    @Test func `every metric has the prefix, a help line, a type and a number`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            try proxy.get("/x")
            let page = try proxy.admin.get("/metrics")
            #expect(page.status == 200 && page["content-type"]?.hasPrefix("text/plain") ?? false)
            for line in try page.wholeText.split(separator: "\n") {
                #expect(
                    line.contains(
                        #/^(# (HELP|TYPE) coalesced_[a-z0-9_]+ |coalesced_[a-z0-9_]+(\{[^}]*\})? (-?[0-9.eE+-]+|NaN|\+Inf)$)/#
                    ), "\(line)")
            }
            #expect(try proxy.metric(.fetches) == 1)
            let version =
                try Program.run("--version").output.split(separator: " ").last.map { $0.filter { !$0.isWhitespace } }
                ?? ""
            let announced = try page.wholeText.contains("\ncoalesced_build_info{version=\"\(version)\"} 1\n")
            #expect(announced && !version.isEmpty)
        }
    }

    @Test func `a client that sends too much can read the whole response`() throws {
        try scenario { _, proxy in
            let client = try proxy.admin.connect()
            let head = proxy.admin.request("POST", "/purge", ["Content-Length: 1000000"])
            try client.send(head + String(repeating: "x", count: 100_000))
            let answer = try client.answer(to: "POST")
            #expect(answer.status == 413)
            // A connection that was closed would answer with a reset, or take nothing.
            try client.send("x")
            #expect(client.isClosed())
            #expect(!client.isReset)
        }
    }

    @Test(arguments: [("0600", 0o600), ("0666", 0o666)] as [(String, UInt32)])
    func `the admin socket has the configured permissions`(mode: String, permissions: UInt32) throws {
        try scenario(.other(section: "admin", key: "socket-mode", value: mode)) { _, proxy in
            let actual = System.permissions(of: "\(proxy.folder)/admin.sock")
            #expect(actual == permissions)
        }
    }

    @Test func `the other pages are served while purging is turned off`() throws {
        try scenario(.other(section: "admin", key: "purge", value: "false")) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "x")] }
            try proxy.get("/x")
            let purge = try proxy.admin.send("POST", "/purge", body: "all")
            let status = try proxy.admin.get("/status").status
            let command = try proxy.command("purge", "--all")
            #expect(purge.status == 403 && purge.text.contains("admin.purge") && status == 200)
            #expect(command.exit == .code(69) && command.errors.contains("admin.purge"))
            try proxy.get("/x")
            #expect(origin.count("/x") == 1, "it is still stored")
        }
    }

    @Test(arguments: [
        ("DELETE", "/healthz", "GET, HEAD"), ("POST", "/metrics", "GET, HEAD"), ("GET", "/purge", "POST"),
    ])
    func `a page requested with another method lists the permitted methods`(
        _ method: String, _ path: String, _ allowed: String
    )
        throws
    {
        try scenario { _, proxy in
            let admin = proxy.admin
            let client = try admin.connect()
            try client.send(admin.request(method, path))
            let answer = try client.answer()
            #expect(answer.status == 405 && answer["allow"] == allowed)
        }
    }

    @Test func `with a token file, only requests with its token are answered, but for the health pages`() throws {
        let folder = try System.makeTemporaryFolder()
        try System.write("0123456789abcdef\n", to: "\(folder)/token")
        try scenario(.other(section: "admin", key: "token-file", value: "\(folder)/token")) { origin, proxy in
            for page in ["/healthz", "/readyz"] { #expect(try proxy.admin.get(page).status == 200) }
            let wrong = [[], ["Authorization: Bearer 0123456789abcdeg"], ["Authorization: Basic 0123456789abcdef"]]
            for (method, page) in [
                ("GET", "/status"), ("GET", "/metrics"), ("POST", "/purge"), ("POST", "/reload"), ("POST", "/drain"),
                ("POST", "/undrain"),
            ] {
                for fields in wrong {
                    let answer = try proxy.admin.send(method, page, fields, body: "all")
                    #expect(answer.status == 401 && answer["www-authenticate"] == "Bearer", "\(method) \(page)")
                }
            }
            #expect(try proxy.admin.get("/status", "Authorization: bearer 0123456789abcdef").status == 200)
            let page = ["Authorization: Bearer 0123456789abcdef", "Origin: http://evil.example", "Host: localhost"]
            #expect(try proxy.admin.send("POST", "/purge", page, body: "all").status == 403, "from a web page")

            // The commands take the token from the file of settings.
            let file = ["--config", proxy.configurationPath]
            #expect(try proxy.command(["status"] + file).exit == .code(0))
            let without = try proxy.command("status")
            #expect(
                without.exit == .code(69)
                    && without.errors.contains(" asks for a token (401): set admin.token-file in "))

            // Whatever else is wrong in that file.
            let settings = System.contents(of: proxy.configurationPath)
            try System.write("wrkers: 1\n" + settings, to: proxy.configurationPath)
            for words in [["status"], ["purge", "--all"], ["top", "--once"]] {
                #expect(try proxy.command(words + file).exit == .code(0), "\(words)")
            }
            let refused = try proxy.command(["reload"] + file)
            #expect(refused.exit == .code(78) && refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")
            #expect(refused.errors.hasPrefix("\(proxy.configurationPath):1:1: `wrkers` is not known"))
            try System.write(settings, to: proxy.configurationPath)

            // A reload takes another token.
            try System.write("fedcba9876543210", to: "\(folder)/token")
            let early = try proxy.command(["reload"] + file)
            #expect(early.exit == .code(69), "its token is not the one in use yet")
            #expect(
                early.errors.contains(" asks for another token (401): that in \(folder)/token, "), "\(early.errors)")
            #expect(early.errors.contains("SIGHUP") && early.errors.split(separator: "\n").count == 1)
            let signalled = try Program.run("reload", "--pid", "\(proxy.child)")
            #expect(signalled.exit == .code(0), "\(signalled)")
            #expect(signalled.errors == "process \(proxy.child) got SIGHUP; its log has the outcome\n")
            try eventually("the token is in use") { try proxy.command(["status"] + file).exit == .code(0) }
            #expect(try Program.run("reload", "--pid", "\(proxy.child)").output.hasPrefix("reloaded "))

            // The token's file is gone: the answer says which, and why.
            System.remove("\(folder)/token")
            let gone = try proxy.command(["status"] + file)
            #expect(
                gone.exit == .code(69) && gone.errors.contains("/token` cannot be read: No such file"), "\(gone.errors)"
            )
        }
    }

    @Test func `a purge of a tag that no stored response has also says what becomes of a fetch`() throws {
        try scenario { origin, proxy in
            for (words, outcome) in [(["--tag"], "not stored"), (["--soft", "--tag"], "will be stale")] {
                let (gate, path, tag) = (Gate(), "/\(words.count)", "tag-\(words.count)")
                origin.on(path) { _ in
                    [.gate(gate), .answer(200, "Cache-Control: max-age=60", "Cache-Tag: \(tag)", body: "x")]
                }
                let client = proxy.crowd(1, get: path)
                try eventually("it is being fetched") { origin.count(path) == 1 }
                let purge = try proxy.command(["purge"] + words + [tag])
                #expect(purge.exit == .code(0) && purge.output.contains(" 0 "), "\(purge)")
                #expect(
                    purge.errors
                        == "no stored response had the tag (one that was being fetched is not counted, and \(outcome)). Tags are compared byte by byte, with their case\n"
                )
                gate.open()
                #expect(client.finished()[0].status == 200)
            }
        }
    }

    @Test func `with a list of hosts, requests for other names are refused`() throws {
        try scenario(.other(section: "admin", key: "hosts", value: "[admin.example]")) { _, proxy in
            let asked = [
                ("admin.example", 200), ("admin.example:8081", 200), ("localhost", 200), ("evil.example", 403),
            ]
            for (host, status) in asked {
                let answer = try proxy.admin.get("/status", "Host: \(host)")
                #expect(answer.status == status)
            }
            let health = try proxy.admin.get("/healthz", "Host: evil.example")
            let page = ["Host: admin.example", "Origin: http://evil.example"]
            let purge = try proxy.admin.send("POST", "/purge", page, body: "all")
            #expect(health.status == 200 && purge.status == 403)
        }
    }

    @Test func `the counters distinguish led, joined and joined late`() throws {
        try scenario { origin, proxy in
            let head = Gate(), rest = Gate()
            origin.on("/x") { _ in
                [
                    .gate(head), .head(200, "Cache-Control: max-age=60", "Content-Length: 4"), .text("ab"), .gate(rest),
                    .text("cd"),
                ]
            }
            let early = proxy.crowd(10, get: "/x")
            try proxy.joined(10)
            #expect(try proxy.metric(.led) == 1)
            #expect(try proxy.metric(.joined) == 9)
            head.open()
            try eventually("the first half is there") { early.answers.allSatisfy { $0.body.length == 2 } }
            let late = proxy.crowd(5, get: "/x")
            try proxy.joined(15)
            #expect(try proxy.metric(.joinedLate) == 5)
            rest.open()
            #expect((early.finished() + late.finished()).allSatisfy { $0.text == "abcd" })
        }
    }

    @Test func `the processor time of each worker is reported`() throws {
        try scenario(.workers(2)) { _, proxy in
            func times() throws -> [Double] {
                let page = try proxy.admin.get("/metrics").wholeText
                return (0...2).map { Program.sum("coalesced_worker_cpu_seconds_total{worker=\"\($0)\"}", in: page) }
            }
            let before = try times()
            // It takes some to tell.
            let after = try times()
            #expect(before[0] > 0 && before[1] > 0 && before[2] == 0, "there are two")
            #expect(after[0] > before[0] && after[1] > before[1])
        }
    }

    @Test func `the iterations of each worker's loop are reported`() throws {
        try scenario(.workers(2)) { _, proxy in
            func iterations(_ page: String, _ sample: String) -> [Double] {
                (0...2).map { Program.sum("coalesced_worker_iteration_seconds_\(sample){worker=\"\($0)\"}", in: page) }
            }
            // Each is asked in an iteration of its own, which is over when the next asks.
            _ = try proxy.admin.get("/metrics")
            let page = try proxy.admin.get("/metrics").wholeText
            let (counts, sums) = (iterations(page, "count"), iterations(page, "sum"))
            #expect(counts[0] > 0 && counts[1] > 0 && counts[2] == 0, "there are two")
            #expect(sums[0] > 0 && sums[0] < 60 && sums[1] > 0 && sums[1] < 60)
            #expect(page.contains("coalesced_worker_iteration_seconds_bucket{worker=\"1\",le=\"+Inf\"}"))
        }
    }

    @Test func `a fetch that takes no joiners does not count as led`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: no-store", body: "x")] }
            try proxy.get("/x")
            // From now on the key is known as not shareable.
            try proxy.get("/x")
            let conversation = try proxy.connect()
            try conversation.send(proxy.request("POST", "/x", [], body: "y"))
            _ = try conversation.answer(to: "POST")
            #expect(try proxy.metric(.led) == 1)
            #expect(try proxy.metric(.alone) == 2)
        }
    }

    @Test func `the status page is JSON, and the status command prints JSON too`() throws {
        try scenario { _, proxy in
            guard case .object(let members) = try proxy.status() else { throw Late(what: "an object", place: "status") }
            #expect(!members.isEmpty)
            let run = try proxy.command("status")
            #expect(run.exit == .code(0) && !run.output.isEmpty)
        }
    }

    @Test func `the status lists the age and the received bytes of each fetch, the oldest first`() throws {
        try scenario { origin, proxy in
            let (silent, rest) = (Gate(), Gate())
            origin.on("/silent") { _ in [.gate(silent), .answer(200, body: "x")] }
            origin.on("/half") { _ in [.head(200, "Content-Length: 4"), .text("ab"), .gate(rest), .text("cd")] }
            var crowds: [Crowd] = []
            for path in ["/silent", "/half"] {
                crowds.append(proxy.crowd(1, get: path))
                try eventually("it is asked") { origin.count(path) == 1 }
            }
            try eventually("the first is a second old, and of the other one half is there") {
                guard case .array(let fetches) = try proxy.status()["fetches"], fetches.count == 2 else { return false }
                let keys = fetches.map { $0["key"]?.string ?? "" }
                let (age, bytes) = (fetches.map { $0["seconds"]?.number ?? -1 }, fetches.map { $0["bytes"] })
                return keys[0].hasSuffix("/silent") && keys[1].hasSuffix("/half") && age[0] >= 1 && age[0] >= age[1]
                    && age[0] < 30 && bytes == [nil, .number(2)]
            }
            silent.open()
            rest.open()
            for crowd in crowds { #expect(crowd.finished().allSatisfy { $0.status == 200 }) }
        }
    }

    @Test func `the admin pages are not on the public listener`() throws {
        try scenario { origin, proxy in
            origin.on("*") { _ in [.answer(200, body: "from the origin")] }
            for path in ["/healthz", "/readyz", "/metrics", "/status"] {
                let answer = try proxy.get(path)
                #expect(answer.text == "from the origin", "\(path)")
            }
        }
    }

    @Test func `the admin listener can listen on a port`() throws {
        let program = try Program.serve(
            upstream: "http://127.0.0.1:9", arguments: ["--admin", "127.0.0.1:0"], listeners: 2)
        defer { program.stop() }
        let healthy = try program.ports.filter { try Address(endpoint: .tcp($0)).get("/readyz").status == 200 }
        #expect(healthy.count == 1)
    }

    /// A program whose admin listener is on a port.
    private func onPort(_ body: (Address, Program) throws -> Void) throws {
        let program = try Program.serve(
            upstream: "http://127.0.0.1:9", arguments: ["--admin", "127.0.0.1:0"], listeners: 2)
        defer { program.stop() }
        let admin = try program.ports.map { Address(endpoint: .tcp($0)) }.filter { try $0.get("/readyz").status == 200 }
        try #require(admin.count == 1)
        try body(admin[0], program)
    }

    @Test func `a page of another site in a browser purges nothing`() throws {
        try onPort { admin, _ in
            let (ours, form) = (admin.host, "Content-Type: text/plain")
            let asked: [(fields: [String], status: Int)] = [
                ([], 200), ([form], 200), (["Host: localhost"], 200), (["Host: [::1]:8081"], 200),
                (["Host: LocalHost:1"], 200),
                (["Host: localhost.:1"], 200), (["Host: a.Localhost"], 200), (["Host: evil-localhost"], 403),
                (["Host: localhost.evil.example"], 403),
                (["Origin: http://\(ours)"], 200), (["Sec-Fetch-Site: same-origin"], 200),
                (["Sec-Fetch-Site: none"], 200),
                (["Origin: http://evil.example", form], 403), (["Origin: null"], 403),
                (["Origin: https://\(ours)"], 403),
                (["Origin: http://127.0.0.1:1"], 403), (["Sec-Fetch-Site: cross-site"], 403),
                (["Sec-Fetch-Site: same-site"], 403),
                (["Host: evil.example:8081"], 403), (["Host: evil.example", "Origin: http://evil.example"], 403),
                (["Host: 127.0.0.1.evil.example"], 403),
            ]
            for (fields, status) in asked {
                let conversation = try admin.connect()
                try conversation.send(admin.request("POST", "/purge", fields, body: "all"))
                let answer = try conversation.answer(to: "POST")
                #expect(answer.status == status, "\(fields)")
                if status == 403 {
                    #expect(answer.text.hasSuffix(".\n") && answer.text.split(separator: "\n").count == 1)
                }
            }
        }
    }

    @Test func `a request under a foreign host name reads nothing, and is logged once`() throws {
        try onPort { admin, program in
            for page in ["/status", "/metrics"] {
                let named = try admin.get(page, "Host: evil.example")
                // From another site's page, which may not see the answer.
                let unseen = try admin.get(page, "Origin: http://evil.example", "Sec-Fetch-Site: cross-site")
                #expect(named.status == 403 && unseen.status == 200, "\(page)")
            }
            try eventually("it is told") { program.diagnostics.contains("refused a request") }
            #expect(program.diagnostics.matches(of: #/refused a request/#).count == 1, "\(program.diagnostics)")
        }
    }

    @Test func `health checks are served under any host name, and change nothing`() throws {
        try onPort { admin, program in
            for (method, page, status) in [
                ("GET", "/healthz", 200), ("HEAD", "/readyz", 200), ("POST", "/healthz", 403),
                ("GET", "/healthz/x", 403),
            ] {
                let conversation = try admin.connect()
                try conversation.send(admin.request(method, page, ["Host: gateway.example:9901"]))
                let answer = try conversation.answer(to: method)
                #expect(answer.status == status, "\(method) \(page)")
            }
        }
    }

    @Test(arguments: [nil, "coalesced", "nginx"])
    func `the commands refuse a server that does not identify itself as coalesced`(name: String?) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/status") { _ in
            [
                .head(200, "Content-Length: 2", name.map { "Server: \($0)" } ?? "X-Server: coalesced"), .text("{}"),
                .close,
            ]
        }
        let run = try Program.run("status", "--admin", origin.url.replacing("http://", with: ""))
        #expect(run.exit == .code(name == "coalesced" ? 0 : 69), "\(run.everything)")
    }

    @Test func `the commands distinguish a silent server from an absent one, and wait longer for a purge`() throws {
        let (listener, port) = try Socket.listen()
        let silent = try Program.run("status", "--admin", "127.0.0.1:\(port)")
        #expect(silent.exit == .code(69) && silent.errors.contains("no answer within 5"), "\(silent.everything)")
        #expect(!silent.errors.contains("no coalesced at"))
        Socket.close(listener)
        let nobody = try Program.run("status", "--admin", "127.0.0.1:\(port)")
        #expect(nobody.exit == .code(69) && nobody.errors.contains("no coalesced at"), "\(nobody.everything)")
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/purge") { _ in
            // The time itself is what is tested.
            [.wait(.seconds(6)), .head(200, "Content-Length: 9", "Server: coalesced"), .text("purged 1 "), .close]
        }
        let slow = try Program.run(
            "purge", "--all", "--admin", origin.url.replacing("http://", with: ""))
        #expect(slow.exit == .code(0) && slow.output == "purged 1 ", "\(slow.everything)")
    }
}
