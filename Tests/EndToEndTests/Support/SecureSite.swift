import CertificateMaking
import TLS

/// A program with certificates of its own: its first listener speaks TLS, and its second one does not.
struct SecureSite {
    let origin: ScriptedOrigin
    let proxy: Program
    /// Has the files that the configuration names, and `authority.pem`.
    let folder: String
    /// The listener in the clear.
    let plain: Address

    /// The TLS listener, for whoever makes the handshake.
    var raw: Address { Address(endpoint: .tcp(proxy.endpoint.port)) }
    var port: UInt16 { proxy.endpoint.port }

    /// A conversation over TLS that begins with this offer.
    func connect(_ offer: TLSEnd.Offer = TLSEnd.Offer()) throws -> Conversation {
        let client = try raw.connect()
        client.secure(offer)
        return client
    }

    /// One request on a connection of its own.
    func get(
        _ target: String, _ fields: String..., host: String? = nil, offer: TLSEnd.Offer = TLSEnd.Offer()
    ) throws -> Answer {
        let client = try connect(offer)
        try client.send(proxy.request("GET", target, ["Host: \(host ?? offer.name ?? proxy.host)"] + fields))
        return try client.answer()
    }

    /// - Parameters:
    ///   - identities: the certificates, the first one for clients without a name.
    ///   - listener: more keys of the TLS listener.
    ///   - tls: more keys of the section; `@` stands for the program's folder, and `FILES` for that of its files.
    ///   - files: to be there, besides certificates.
    static func run(
        _ settings: Setting..., identities: [TLSIdentity] = [TestIdentity.ofProgram], listener: String = "",
        tls: [String: String] = [:], files: [String: String] = [:], _ body: (SecureSite) throws -> Void
    ) throws {
        let folder = try System.makeTemporaryFolder()
        defer { System.removeFolder(folder) }
        try System.write(TestIdentity.authorityText, to: "\(folder)/authority.pem")
        for (name, text) in files { try System.write(text, to: "\(folder)/\(name)") }
        var certificates: [String] = []
        for (index, identity) in identities.enumerated() {
            let path = "\(folder)/site\(index)"
            try TestIdentity.write(identity, to: path)
            certificates.append("{certificate: \(path).pem, key: \(path).key}")
        }
        let keys = tls.mapValues { $0.replacing("FILES", with: folder) }
            .merging(["certificates": "[\(certificates.joined(separator: ", "))]"]) { own, _ in own }
        let plain = try Socket.freePort()
        let listen = "[{address: \"https://127.0.0.1:0\"\(listener)}, \"127.0.0.1:\(plain)\"]"
        let all =
            settings + [.other(section: "", key: "listen", value: listen)]
            + keys.map { .other(section: "tls", key: $0.key, value: $0.value) }
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=600", body: "hello")] }
        let proxy = try Program.serve(servers: [origin.url], all, listeners: 2)
        defer { proxy.stop() }
        let site = SecureSite(
            origin: origin, proxy: proxy, folder: folder, plain: Address(endpoint: .tcp(plain)))
        do { try body(site) } catch {
            throw Trouble(error: error, said: String(proxy.diagnostics.suffix(4000)))
        }
        if let exit = proxy.exit(), !proxy.mayHaveEnded(with: exit) {
            throw Program.Ended(exit: exit, diagnostics: proxy.diagnostics)
        }
    }

    private struct Trouble: Error, CustomStringConvertible {
        let error: any Error
        let said: String
        var description: String { "\(error)\nthe program said:\n\(said)" }
    }
}

extension SecureSite {
    /// Reads the settings and the files again, and waits for that.
    func reload() throws {
        let outcome = try proxy.admin.send("POST", "/reload", body: "")
        guard outcome.status == 200 else { throw Late(what: "a reload: \(outcome.text)", place: "SecureSite") }
    }
}
