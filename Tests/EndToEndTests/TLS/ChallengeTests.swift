import Testing

/// `tls.acme-challenges`: how an ACME client proves that it is this machine.
@Suite(.scenario) struct ChallengeTests {
    private static let path = "/.well-known/acme-challenge"

    private func run(_ settings: Setting..., body: (_ site: SecureSite, _ folder: String) throws -> Void) throws {
        let folder = try System.makeTemporaryFolder()
        let challenges = "\(folder)\(Self.path)"
        for path in ["\(folder)/.well-known", challenges] { System.makeFolder(path) }
        defer { for path in [challenges, "\(folder)/.well-known", folder] { System.removeFolder(path) } }
        let all = settings + [.accessLog]
        try SecureSite.run(all[0], all.last ?? .accessLog, tls: ["acme-challenges": folder]) { site in
            site.origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", body: "the origin's")] }
            try body(site, challenges)
        }
    }

    @Test func `a file in the folder is served in the clear, for every host, before routes`() throws {
        try run(.hosts(["a.test"])) { site, folder in
            try System.write("token.key", to: "\(folder)/token-1_A")
            for host in ["a.test", "unknown.test", "127.0.0.1"] {
                let answer = try site.plain.get("\(Self.path)/token-1_A", "Host: \(host)")
                #expect(answer.status == 200 && answer.text == "token.key", "\(host)")
            }
            let head = try site.plain.send("HEAD", "\(Self.path)/token-1_A", "Host: a.test")
            #expect(head.status == 200 && head.head?.contentLength == 9 && head.body.length == 0)
            #expect(site.origin.total == 0)
            // A file that comes later, or changes, counts at once.
            try System.write("other", to: "\(folder)/token-1_A")
            #expect(try site.plain.get("\(Self.path)/token-1_A", "Host: a.test").text == "other")
            // Over TLS it is a request like any other.
            #expect(try site.get("\(Self.path)/token-1_A", host: "a.test").text == "the origin's")
        }
    }

    @Test func `what is no small file of the folder itself is not there`() throws {
        try run(.workers(1)) { site, folder in
            try System.write("secret", to: "\(folder)/../secret")
            try System.write("token", to: "\(folder)/token")
            try System.link("\(folder)/link", to: "\(folder)/token")
            try System.link("\(folder)/dangling", to: "nowhere")
            System.makeFolder("\(folder)/folder")
            defer { System.removeFolder("\(folder)/folder") }
            System.makeFIFO("\(folder)/fifo")
            try System.write([UInt8](repeating: 0x41, count: 5_000), to: "\(folder)/large")
            try System.write("locked", to: "\(folder)/empty")
            for name in ["link", "dangling", "folder", "fifo", "large", "missing"] {
                let answer = try site.plain.get("\(Self.path)/\(name)")
                #expect(answer.status == 404 && !answer.text.contains("token"), "\(name)")
            }
            #expect(site.origin.total == 0)
            // What has no token's form is not for the folder.
            for target in [
                "/../secret", "/%2e%2e/secret", "/..%2fsecret", "/token/", "/token/../token", "/", "/token?a",
            ] {
                let answer = try site.plain.get("\(Self.path)\(target)")
                #expect(!answer.text.contains("secret"), "\(target)")
                #expect(answer.text != "token", "\(target)")
            }
            for method in ["POST", "DELETE"] {
                #expect(try site.plain.send(method, "\(Self.path)/token", body: "").text != "token")
            }
            #expect(try site.plain.get("\(Self.path)/token").text == "token")
            try eventually("the log") { try site.proxy.accessLog.count > 10 }
        }
    }

    @Test func `a folder of challenges that leads elsewhere by a link is not followed`() throws {
        try run(.workers(1)) { site, folder in
            System.rename(folder, to: "\(folder)-moved")
            try System.write("token", to: "\(folder)-moved/token")
            try System.link(folder, to: "\(folder)-moved")
            #expect(try site.plain.get("\(Self.path)/token").status == 404)
            System.remove(folder)
            System.rename("\(folder)-moved", to: folder)
            #expect(try site.plain.get("\(Self.path)/token").text == "token")
        }
    }

    @Test func `without the key, challenges are requests like all others`() throws {
        try SecureSite.run { site in
            site.origin.on("*") { _ in [.answer(200, body: "the origin's")] }
            let answer = try site.plain.get("\(Self.path)/token")
            #expect(answer.text == "the origin's")
        }
    }
}
