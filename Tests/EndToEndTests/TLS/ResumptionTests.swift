import CertificateMaking
import TLS
import Testing

/// Sessions that are resumed: with tickets, over programs that share keys, and never under another name or rule.
@Suite(.scenario) struct ResumptionTests {
    private static let sites = ["a.test", "b.test"].map { TestIdentity.authority.identity(for: $0) }
    private static let clients = TestAuthority("Clients")

    /// Keys as `openssl rand` makes them.
    private static func keys(_ count: Int = 1) -> [UInt8] { (0..<80 * count).map { _ in UInt8.random(in: 0...255) } }

    /// One handshake and one request; whether it resumed the session of `file`, and leaves a session there.
    private func resumes(
        _ site: SecureSite, _ name: String = "a.test", version: String, from file: String?, to new: String? = nil,
        _ more: [String] = []
    ) throws -> Bool {
        var words = ["-servername", name, version == "1.2" ? "-tls1_2" : "-tls1_3", "-ign_eof"] + more
        if let file { words += ["-sess_in", "\(site.folder)/\(file)"] }
        if let new { words += ["-sess_out", "\(site.folder)/\(new)"] }
        let request = "GET /x HTTP/1.1\r\nHost: \(name)\r\nConnection: close\r\n\r\n"
        let run = try Command.openssl(site, words, input: request)
        guard run.output.contains("200 OK") else { throw Wrong(text: run.everything) }
        let (reused, new) = (run.output.contains("Reused, TLSv"), run.output.contains("New, TLSv"))
        guard reused != new else { throw Wrong(text: run.everything) }
        return reused
    }

    private struct Wrong: Error, CustomStringConvertible {
        let text: String
        var description: String { text }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a client that returns with a ticket is spared the handshake, on any loop`(_ version: String) throws {
        try SecureSite.run(.workers(2), identities: Self.sites) { site in
            let first = try resumes(site, version: version, from: nil, to: "session")
            let others = try (0..<6).map { _ in try resumes(site, version: version, from: "session") }
            #expect(!first && others.allSatisfy { $0 })
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a session of one name is not resumed under another`(_ version: String) throws {
        try SecureSite.run(identities: Self.sites) { site in
            let first = try resumes(site, "a.test", version: version, from: nil, to: "session")
            let other = try resumes(site, "b.test", version: version, from: "session")
            let again = try resumes(site, "a.test", version: version, from: "session")
            #expect(!first && !other && again)
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a session of one rule for certificates is not resumed under another`(_ version: String) throws {
        let files = ["clients.pem": Self.clients.file.text]
        // The same ticket keys on two listeners; the second one wants no certificates.
        let keys = Self.keys()
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        try System.write(keys, to: "\(folder)/tickets")
        let tls = ["client-ca": "FILES/clients.pem", "ticket-keys": "\(folder)/tickets"]
        try SecureSite.run(
            identities: Self.sites, listener: ", client-certificates: required", tls: tls, files: files
        ) { strict in
            try SecureSite.run(identities: Self.sites, tls: tls, files: files) { lax in
                try TestIdentity.write(Self.clients.identity(for: "ann"), to: "\(strict.folder)/ann")
                let shown = ["-cert", "\(strict.folder)/ann.pem", "-key", "\(strict.folder)/ann.key"]
                #expect(try !resumes(lax, version: version, from: nil, to: "session"))
                #expect(try resumes(lax, version: version, from: "session"))
                System.rename("\(lax.folder)/session", to: "\(strict.folder)/session")
                #expect(throws: (any Error).self) { try resumes(strict, version: version, from: "session") }
                #expect(try !resumes(strict, version: version, from: nil, to: "session", shown))
                #expect(try resumes(strict, version: version, from: "session"))
            }
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a session ends with the authorities that its certificate was believed by`(_ version: String) throws {
        try SecureSite.run(
            identities: Self.sites, listener: ", client-certificates: required",
            tls: ["client-ca": "FILES/clients.pem"], files: ["clients.pem": Self.clients.file.text]
        ) { site in
            try TestIdentity.write(Self.clients.identity(for: "ann"), to: "\(site.folder)/ann")
            let shown = ["-cert", "\(site.folder)/ann.pem", "-key", "\(site.folder)/ann.key"]
            #expect(try !resumes(site, version: version, from: nil, to: "session", shown))
            #expect(try resumes(site, version: version, from: "session"))
            try System.write(TestAuthority("Others").file.text, to: "\(site.folder)/clients.pem")
            try site.reload()
            #expect(throws: (any Error).self) { try resumes(site, version: version, from: "session") }
            #expect(throws: (any Error).self) { try resumes(site, version: version, from: "session", shown) }
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a session ends with the certificate of its client`(_ version: String) throws {
        try SecureSite.run(
            identities: Self.sites, listener: ", client-certificates: required",
            tls: ["client-ca": "FILES/clients.pem"], files: ["clients.pem": Self.clients.file.text]
        ) { site in
            // The certificate is good for so many seconds from now on, of which a busy machine needs some.
            let seconds = 8
            let end = ContinuousClock.now + .seconds(seconds)
            try TestIdentity.write(
                Self.clients.identity(for: "ann", valid: -3600...seconds), to: "\(site.folder)/ann")
            let shown = ["-cert", "\(site.folder)/ann.pem", "-key", "\(site.folder)/ann.key"]
            #expect(try !resumes(site, version: version, from: nil, to: "session", shown))
            #expect(try resumes(site, version: version, from: "session", to: "session"))
            try eventually("it has expired", within: .seconds(30)) { ContinuousClock.now > end + .seconds(1) }
            #expect(throws: (any Error).self) { try resumes(site, version: version, from: "session") }
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a subject is known after a resumption, too`(_ version: String) throws {
        let tls = ["client-ca": "FILES/clients.pem", "client-subject-field": "x-client-subject"]
        try SecureSite.run(
            identities: Self.sites, listener: ", client-certificates: offered", tls: tls,
            files: ["clients.pem": Self.clients.file.text]
        ) { site in
            try TestIdentity.write(Self.clients.identity(for: "ann"), to: "\(site.folder)/ann")
            let shown = ["-cert", "\(site.folder)/ann.pem", "-key", "\(site.folder)/ann.key"]
            #expect(try !resumes(site, version: version, from: nil, to: "session", shown))
            #expect(try resumes(site, version: version, from: "session"))
            #expect(site.origin.requests("/x").map { $0["x-client-subject"] } == ["CN=ann", "CN=ann"])
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `programs that share ticket keys resume each other's sessions, until the keys change`(_ version: String) throws
    {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        let (old, new) = (Self.keys(), Self.keys())
        try System.write(old, to: "\(folder)/tickets")
        let tls = ["ticket-keys": "\(folder)/tickets"]
        try SecureSite.run(identities: Self.sites, tls: tls) { one in
            try SecureSite.run(identities: Self.sites, tls: tls) { other in
                #expect(try !resumes(one, version: version, from: nil, to: "session"))
                System.rename("\(one.folder)/session", to: "\(other.folder)/session")
                #expect(try resumes(other, version: version, from: "session"))
                // The former key second: its tickets are still good.
                try System.write(new + old, to: "\(folder)/tickets")
                try other.reload()
                #expect(try resumes(other, version: version, from: "session"))
                try System.write(new, to: "\(folder)/tickets")
                try other.reload()
                #expect(try !resumes(other, version: version, from: "session"))
            }
        }
    }

    @Test func `two programs with keys of their own resume nothing of each other`() throws {
        try SecureSite.run(identities: Self.sites) { one in
            try SecureSite.run(identities: Self.sites) { other in
                let first = try resumes(one, version: "1.3", from: nil, to: "session")
                System.rename("\(one.folder)/session", to: "\(other.folder)/session")
                let second = try resumes(other, version: "1.3", from: "session")
                #expect(!first && !second)
            }
        }
    }

    @Test func `a reload leaves the tickets good`() throws {
        try SecureSite.run(identities: Self.sites) { site in
            #expect(try !resumes(site, version: "1.3", from: nil, to: "session"))
            try site.reload()
            #expect(try resumes(site, version: "1.3", from: "session"))
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a resumed connection is for the host of its handshake alone, where certificates are asked for`(
        _ version: String
    ) throws {
        try SecureSite.run(
            identities: Self.sites, listener: ", client-certificates: offered", tls: ["client-ca": "FILES/clients.pem"],
            files: ["clients.pem": Self.clients.file.text]
        ) { site in
            try TestIdentity.write(Self.clients.identity(for: "ann"), to: "\(site.folder)/ann")
            func ask(_ host: String, _ words: String...) throws -> Command.Run {
                try Command.openssl(
                    site,
                    [
                        "-servername", "a.test", version == "1.2" ? "-tls1_2" : "-tls1_3", "-ign_eof",
                        "-cert", "\(site.folder)/ann.pem", "-key", "\(site.folder)/ann.key",
                    ] + words, input: "GET /x HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n")
            }
            let session = "\(site.folder)/session"
            #expect(try ask("a.test", "-sess_out", session).output.contains("200 OK"))
            let other = try ask("b.test", "-sess_in", session)
            #expect(other.output.contains("Reused, TLSv") && other.output.contains("421 "), "\(other.everything)")
        }
    }
}
