import Bytes
import Configuration
import Routing
import TLS
import Testing

/// Mistakes in settings of TLS with clients, each at its place.
@Suite struct `A mistake in TLS` {
    private static let listen = "listen: https://0.0.0.0:443\n"
    private static let site = "tls: {certificates: [{certificate: /a.pem, key: /a.key}]}\n"

    /// A key with a password, which no test knows.
    private static let encrypted = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAicSjzRAJA8ZgICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEDbOzwJJYLuyO9f/nkl8SNMEgZAc
        34bS4aqa7N5my/f032+jn+8ZIHU3ECUZvXJygW+XwMblSe9s0Ym5xQ/8MsmsetmW
        T1mFKkbzLgxQTXjLrAZzRUeRCBqZ9Qfu6wy+wA6lYxe8Zh1wt1C9YDaOblcYRlUZ
        EiovtgPVK0c7sLIaGR6HAMFln64aTqIuol1tE5+2dULGEilBnaMDgGEqJD/psQ0=
        -----END ENCRYPTED PRIVATE KEY-----

        """

    /// The same in the form of earlier versions of OpenSSL.
    private static let formerlyEncrypted = """
        -----BEGIN EC PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: AES-128-CBC,B3399700AE627479824AC2AD2CD138F0

        TGokqBKvTtW/zQ1kibQh2epDvkT+yRNNyl90c3An1d5MOpgetVrS3OBZFx08Ivv5
        udXVlXTPBR3J8FLLoBQzKUZyf7sLeTTHizzqV+16YmFmoZYmsTUoEKhnqu20zmfa
        gM8kpi0Auzu6V6P8IHJSS/lmwQC8xPA5J4P4zxGmCKc=
        -----END EC PRIVATE KEY-----

        """

    private static let shelf: Shelf = {
        var shelf = Shelf.usual
        let certificate = shelf.texts["/a.pem"] ?? ""
        shelf.texts["/encrypted"] = encrypted
        shelf.texts["/formerly"] = formerlyEncrypted
        shelf.texts["/empty"] = ""
        shelf.texts["/cut"] = String(certificate.prefix(certificate.count / 2))
        shelf.texts["/damaged"] = certificate.replacing("MII", with: "AAA", maxReplacements: 1)
        shelf.texts["/t79"] = String(repeating: "t", count: 79)
        shelf.texts["/t320"] = String(repeating: "t", count: 320)
        shelf.folders = ["/file": .other, "/none": .absent]
        return shelf
    }()

    @Test(arguments: [
        (
            "listen: https://unix:/a\n",
            "f:1:9: `listen: https://unix:/a`: write a Unix socket without `https://`: `unix:/path`, or `{address: unix:/path, tls: true}`"
        ),
        (
            "listen: http://unix:/a\n",
            "f:1:9: `listen: http://unix:/a`: write a Unix socket without `http://`: `unix:/path`"
        ),
        (
            "listen: https://a.example:443\n",
            "f:1:9: `listen: https://a.example:443`: not an address to listen on: not an IP address; give one such as `127.0.0.1:8080`, `[::1]:8080` or `unix:/path`"
        ),
        (
            "listen: {address: https://0.0.0.0:1, tls: false}\n",
            "f:1:43: `address` says otherwise by its scheme; remove `tls`, or the scheme"
        ),
        (
            "listen: {address: http://0.0.0.0:1, tls: true}\n",
            "f:1:42: `address` says otherwise by its scheme; remove `tls`, or the scheme"
        ),
        ("listen: [0.0.0.0:1, 'https://0.0.0.0:1']\n", "f:1:21: `listen` has `0.0.0.0:1` twice; remove one of them"),
        (
            "listen: [0.0.0.0:1, {address: 0.0.0.0:2, client-certificates: required}]\n",
            "f:1:63: only clients that speak TLS show certificates; add `tls: true`, or remove `client-certificates`"
        ),
        (
            "listen: {address: 0.0.0.0:2, tls: true, client-certificates: maybe}\n",
            "f:1:62: `client-certificates: maybe`: not understood; give one of these words (off, offered, required)"
        ),
    ])
    func `of a listener is reported`(_ text: String, _ mistake: String) {
        #expect(Self.shelf.load(text).mistakes == [mistake])
    }

    @Test(arguments: [
        (
            "listen: [0.0.0.0:80, 'https://0.0.0.0:443']\n",
            "f:1:22: there is no certificate for the clients that speak TLS at 0.0.0.0:443; name one in `tls: {certificates: [{certificate: /site.pem, key: /site.key}]}`"
        ),
        (
            "\(site)listen: [0.0.0.0:80, {address: https://0.0.0.0:443, client-certificates: offered}]\n",
            "f:2:74: no certificate of a client can be good without authorities; name a file with them in `tls: {client-ca: /file}`"
        ),
    ])
    func `of what a listener needs is reported at the listener`(_ text: String, _ mistake: String) {
        #expect(Self.shelf.load(text).mistakes == [mistake])
    }

    @Test func `of a listener that a flag or a variable names is reported with its name`() throws {
        var flags = Overrides()
        flags.listeners = [try ScalarSyntax.listener.value(of: "https://0.0.0.0:443")]
        let missing =
            "there is no certificate for the clients that speak TLS at 0.0.0.0:443; name one in `tls: {certificates: [{certificate: /site.pem, key: /site.key}]}`"
        #expect(Self.shelf.load("workers: 1", [:], flags).mistakes == ["--listen: \(missing)"])
        #expect(Self.shelf.loadWithoutFile([:], flags).mistakes == ["--listen: \(missing)"])
        let variables = ["COALESCED_LISTEN": "https://0.0.0.0:443"]
        #expect(Self.shelf.load("workers: 1", variables).mistakes == ["COALESCED_LISTEN: \(missing)"])
        flags.identity = TLSIdentity(certificate: NamedFile(path: "/a.pem"), key: NamedFile(path: "/b.key"))
        let mismatch = "`key: /b.key`: this key does not belong to the certificate in /a.pem"
        #expect(Self.shelf.loadWithoutFile([:], flags).mistakes == ["--tls-key: \(mismatch)"])
        let certificate = ["COALESCED_TLS_CERTIFICATES": "{certificate: /a.pem, key: /b.key}"].merging(variables) { $1 }
        #expect(Self.shelf.load("workers: 1", certificate).mistakes == ["COALESCED_TLS_CERTIFICATES: \(mismatch)"])
        #expect(
            Self.shelf.load("workers: 1", ["COALESCED_TLS_CERTIFICATES": "/a.pem"]).mistakes == [
                "COALESCED_TLS_CERTIFICATES: `/a.pem`: `the value` is not a single value; give `{certificate: /site.pem, key: /site.key}`"
            ])
        #expect(
            Self.shelf.load("workers: 1", ["COALESCED_LISTEN": "0.0.0.0:1,https://0.0.0.0:1"]).mistakes == [
                "COALESCED_LISTEN: `0.0.0.0:1,https://0.0.0.0:1`: `0.0.0.0:1` is there twice; remove one of them"
            ])
    }

    @Test(arguments: [
        (
            "{certificate: /a.pem, key: /b.key}", 50,
            "`key: /b.key`: this key does not belong to the certificate in /a.pem"
        ),
        ("{certificate: /a.key, key: /a.key}", 37, "`certificate: /a.key`: it holds no certificate in PEM form"),
        ("{certificate: /empty, key: /a.key}", 37, "`certificate: /empty`: it holds no certificate in PEM form"),
        ("{certificate: /a.pem, key: /a.pem}", 37, "`certificate: /a.pem`: it holds no private key in PEM form"),
        ("{certificate: /a.pem, key: /empty}", 50, "`key: /empty`: it holds no private key in PEM form"),
        (
            "{certificate: /a.pem, key: /encrypted}", 50,
            "`key: /encrypted`: the key is encrypted; store it without a password"
        ),
        (
            "{certificate: /a.pem, key: /formerly}", 50,
            "`key: /formerly`: the key is encrypted; store it without a password"
        ),
        ("{certificate: /a.pem, key: /secret}", 50, "`key: /secret` cannot be read: Permission denied; let us"),
        (
            "{certificate: /missing, key: /a.key}", 37,
            "`certificate: /missing` cannot be read: Permission denied; let us"
        ),
        ("{certificate: /a.pem}", 23, "a certificate needs `key`; add it"),
        (
            "{certificate: a.pem, key: /a.key}", 37,
            "`certificate: a.pem`: not understood; give a path such as `/etc/ssl/site.pem`"
        ),
        ("/a.pem", 23, "`certificates` is not a single value; give `{certificate: /site.pem, key: /site.key}`"),
    ])
    func `of a certificate is reported at its file`(_ identity: String, _ column: Int, _ mistake: String) {
        let text = "\(Self.listen)tls: { certificates: [\(identity)] }\n"
        #expect(Self.shelf.load(text).mistakes == ["f:2:\(column): \(mistake)"])
    }

    @Test(arguments: ["/cut", "/damaged"])
    func `a damaged certificate is reported`(_ path: String) {
        let text = "\(Self.listen)tls: {certificates: {certificate: \(path), key: /a.key}}\n"
        let found = Self.shelf.load(text).mistakes
        #expect(found.count == 1 && found[0].hasPrefix("f:2:35: `certificate: \(path)`: "), "\(found)")
    }

    @Test func `each certificate is reported at its own place`() {
        let text = """
            listen: https://0.0.0.0:443
            tls:
              certificates:
                - {certificate: /a.pem, key: /a.key}
                - certificate: /b.pem
                  key: /a.key
                - certificate: /missing
                  key: /missing
            """
        #expect(
            Self.shelf.load(text).mistakes == [
                "f:6:12: `key: /a.key`: this key does not belong to the certificate in /b.pem",
                "f:7:20: `certificate: /missing` cannot be read: Permission denied; let us",
                "f:8:12: `key: /missing` cannot be read: Permission denied; let us",
            ])
    }

    @Test(arguments: [
        ("minimum-version: 1.1", "27: `minimum-version: 1.1`: not understood; did you mean `1.2`?"),
        ("unknown-name: drop", "24: `unknown-name: drop`: not understood; give one of these words (default, refuse)"),
        (
            "ticket-keys: /t79",
            "23: `ticket-keys: /t79`: it has 79 bytes; ticket keys are one to 3 times 80 random bytes, the newest first"
        ),
        (
            "ticket-keys: /t320",
            "23: `ticket-keys: /t320`: it has 320 bytes; ticket keys are one to 3 times 80 random bytes, the newest first"
        ),
        (
            "ticket-keys: /empty",
            "23: `ticket-keys: /empty`: it has 0 bytes; ticket keys are one to 3 times 80 random bytes, the newest first"
        ),
        ("client-ca: /a.key", "21: `client-ca: /a.key`: it holds no certificate in PEM form"),
        (
            "acme-challenges: acme",
            "27: `acme-challenges: acme`: not understood; give the path of a folder such as `/var/lib/acme`, or `none`"
        ),
        (
            "acme-challenges: /file",
            "27: `acme-challenges: /file` is no folder; name the webroot of the ACME client"
        ),
    ])
    func `of another key is reported`(_ key: String, _ mistake: String) {
        let found = Self.shelf.load("\(Self.listen)\(Self.site.dropLast(2)),\n     \(key)}\n").mistakes
        #expect(found == ["f:3:\((Int(mistake.prefix { $0 != ":" }) ?? 0) - 4)\(mistake.drop { $0 != ":" })"])
    }

    @Test(arguments: [
        "host", "Content-Length", "connection", "transfer-encoding", "cookie", "authorization", "x-forwarded-for",
        "proxy-user", "range", "user-agent",
    ])
    func `a field that means something else cannot name the subject`(_ name: String) {
        #expect(
            Self.shelf.load("tls: {client-subject-field: \(name)}\n").mistakes == [
                "f:1:29: `client-subject-field: \(name)`: this field has a meaning of its own in HTTP; name one such as `x-client-subject`"
            ])
    }

    @Test func `a field that is taken for another cannot name the subject`() throws {
        #expect(Self.shelf.load("tls: {client-subject-field: x_subject}\n").mistakes.count == 1)
        #expect(
            try Self.shelf.load("tls: {client-subject-field: X-Subject}\n").get().proxy.tls.clientSubjectField
                == "x-subject")
    }

    // MARK: Warnings

    @Test(arguments: [
        (
            site,
            "1:7: warning: no client sees these certificates, since no listener speaks TLS; add one such as `https://0.0.0.0:443` to `listen`"
        ),
        (
            "\(listen)\(site.dropLast(2)), acme-challenges: /acme}\n",
            "2:76: warning: challenges are asked for without TLS, and all listeners have it; add one such as `0.0.0.0:80` to `listen`"
        ),
        (
            "tls: {acme-challenges: /none}\n",
            "1:24: warning: `acme-challenges: /none` does not exist; make this folder, and let the proxy's user enter it"
        ),
        (
            "tls: {client-ca: /a.pem}\n",
            "1:18: warning: `client-ca` has no effect, since no listener asks for clients' certificates; add `client-certificates: required` (or `offered`) to one"
        ),
        (
            "tls: {client-subject-field: x-subject}\n",
            "1:29: warning: `client-subject-field` has no effect, since no listener asks for clients' certificates; add `client-certificates: required` (or `offered`) to one"
        ),
    ])
    func `a key without effect causes a warning`(_ text: String, _ warning: String) throws {
        let found = try Self.shelf.load(text).get().warnings.map(\.warning)
        if text == Self.site {
            #expect(found.count == 1 && found[0].hasSuffix(warning.drop { $0 != " " }), "\(found)")
        } else {
            #expect(found == ["f:\(warning)"])
        }
    }

    @Test func `a key that everybody can read causes a warning`() throws {
        var shelf = Self.shelf
        shelf.open = ["/a.key", "/a.pem"]
        #expect(
            try shelf.load(Self.listen + Self.site).get().warnings.map(\.warning) == [
                "f:2:49: warning: `key: /a.key` can be read by every user of this machine; remove that right, as `chmod o-r` does"
            ])
    }
}
