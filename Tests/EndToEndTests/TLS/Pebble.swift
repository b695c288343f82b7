import Glibc
import Libevent
import NameServing

/// Let's Encrypt's authority for tests, which `make test` installs: it issues certificates for names whose host answers
/// challenges at one port of this machine.
final class Pebble {
    /// The directory of RFC 8555 §7.1.1.
    let url: String
    /// The certificate of the authority's own listener.
    let ownCertificate: String
    private let folder: String
    private let child: pid_t
    private let names: NameServer

    /// - Parameter port: where hosts answer challenges.
    init(challengesAt port: UInt16) throws {
        folder = try System.makeTemporaryFolder()
        let (own, management) = (try Socket.freePort(), try Socket.freePort())
        ownCertificate = "\(folder)/own.pem"
        try Tool.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", "\(folder)/own.key", "-out", ownCertificate, "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ])
        try System.write(
            """
            {"pebble": {"listenAddress": "127.0.0.1:\(own)", "managementListenAddress": "127.0.0.1:\(management)",
              "certificate": "\(ownCertificate)", "privateKey": "\(folder)/own.key", "httpPort": \(port),
              "tlsPort": 1, "ocspResponderURL": "", "externalAccountBindingRequired": false}}
            """, to: "\(folder)/config.json")
        let address = try SocketAddress(parsing: "127.0.0.1:0")
        names = try NameServer { _ in .addresses([address]) }
        // Without pauses, and without the refusals by which it tests clients.
        child = try Spawn.start(
            "/usr/bin/env",
            [
                "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0", "pebble", "-config", "\(folder)/config.json",
                "-dnsserver", "127.0.0.1:\(names.port)",
            ], output: "\(folder)/out", errors: "\(folder)/err")
        url = "https://localhost:\(own)/dir"
        let (child, folder) = (child, folder)
        try eventually("pebble listens; \(System.contents(of: "\(folder)/err"))", within: .seconds(30)) {
            if let exit = Spawn.poll(child) {
                throw Tool.Failed(words: ["pebble"], exit: exit, said: System.contents(of: "\(folder)/err"))
            }
            return System.contents(of: "\(folder)/out").contains("ACME directory available")
        }
    }

    deinit {
        Spawn.signal(child, SIGKILL)
        while Spawn.poll(child) == nil { System.nap(.milliseconds(1)) }
        System.removeFolder(folder)
    }
}
