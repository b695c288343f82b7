import Bytes
import HTTPSemantics
import Routing
import TLS
import YAML

/// The keys for TLS with clients.
enum TLSKeys {
    static let doc = """
        TLS with clients, on the listeners that have it (https:// or tls: true in `listen`). All files are PEM, read at the \
        start and at each reload; connections that are open keep the certificate that they have. TLS 1.2 and 1.3, with the \
        ciphers of Mozilla's intermediate configuration. docs/operating.md says how to get certificates and renew them.
        """

    static let all: [Key<Settings>] = [
        Key(
            "certificates", \.proxy.tls.identities, .identities,
            """
            The certificates: {certificate: /etc/ssl/site.pem, key: /etc/ssl/site.key}, each with its chain in one file (the \
            own certificate first) and its key, without a password. Clients get the one that is valid for the name that \
            they ask for; the first one if they ask for none. Two of the same names may have different kinds of keys \
            (ECDSA and RSA). The proxy's user must be able to read the files.
            """),
        Key("minimum-version", \.proxy.tls.minimumVersion, .word, "The oldest version of TLS that clients may use."),
        Key(
            "unknown-name", \.proxy.tls.refusesUnknownNames, .oneOf([("default", false), ("refuse", true)]),
            """
            What a client gets that asks for a name without a certificate. default: the first certificate. refuse: an \
            alert (unrecognized_name), and no connection.
            """),
        Key(
            "ticket-keys", \.proxy.tls.ticketKeys, .optional(.file(such: "/etc/coalesced/tickets"), "none"),
            """
            A file with the keys of session tickets, the same on all machines behind one name: one to three keys of 80 \
            random bytes each, the newest first. Replace it at least daily, with the former key second. none: each \
            machine makes its own, and changes them every 8 hours.
            """),
        Key(
            "acme-challenges", \.proxy.tls.acmeChallenges, .optional(.folder, "none"),
            """
            A folder (the webroot of certbot, lego or acme.sh), of which only the files in .well-known/acme-challenge/ are \
            served, on all listeners without TLS, for every host and before routes and hosts are looked at. none: such \
            requests are like all others.
            """),
        Key(
            "client-ca", \.proxy.tls.clientAuthorities, .optional(.file(such: "/etc/ssl/clients.pem"), "none"),
            """
            A file with the authorities that clients' certificates must come from, where a listener has \
            client-certificates: offered or required.
            """),
        Key(
            "client-subject-field", \.proxy.tls.clientSubjectField, .optional(.subjectField, "none"),
            """
            The request field that tells upstreams the subject of the client's certificate, such as CN=ann,O=Example \
            (RFC 2253). It is removed from all requests of clients. none: upstreams are not told.
            """),
    ]
}

extension ValueSyntax<TLSIdentity> {
    private static var keys: [Key<TLSIdentity>] {
        [
            Key(
                "certificate", \.certificate, .file(such: "/etc/ssl/site.pem"), isRequired: true,
                "The certificate with its chain."),
            Key("key", \.key, .file(such: "/etc/ssl/site.key"), isRequired: true, "Its key."),
        ]
    }

    /// `{certificate: FILE, key: FILE}`. One of them may have an empty path after a mistake.
    static var identity: Self {
        let keys = keys
        return ValueSyntax(
            write: { ["{certificate: \(quoted($0.certificate.path)), key: \(quoted($0.key.path))}"] }
        ) { node, name, reader in
            guard case .mapping = node else {
                reader.note(
                    node.position,
                    "`\(name)` is not \(node.kind); give `{certificate: /site.pem, key: /site.key}`")
                return nil
            }
            var identity = TLSIdentity(certificate: NamedFile(path: ""), key: NamedFile(path: ""))
            reader.read(node, as: keys, into: &identity, called: "a certificate")
            return identity
        }
    }
}

extension ValueSyntax<[TLSIdentity]> {
    /// A list of certificates with their keys. A single one needs no list.
    static var identities: Self {
        let identity = ValueSyntax<TLSIdentity>.identity
        @Sendable func read(_ node: Node, _ name: String, _ reader: inout Reader) -> [TLSIdentity]? {
            var identities: [TLSIdentity] = []
            for node in node.elements {
                guard let read = identity.read(node, name, &reader) else { continue }
                if !read.certificate.path.isEmpty, identities.contains(where: { $0.certificate == read.certificate }) {
                    reader.note(
                        node.position,
                        "`\(name)` has `\(Spelling.shown(read.certificate.path))` twice; remove one of them")
                }
                identities.append(read)
            }
            return identities
        }
        return ValueSyntax(
            range: "[{certificate: /file, key: /file}, …]",
            write: { ["[\($0.flatMap(identity.write).joined(separator: ", "))]"] },
            parse: { text throws(ValueMistake) in
                try value(ofYAML: text, such: "{certificate: /site.pem, key: /site.key}", read)
            }, read: read)
    }
}

extension ValueSyntax {
    /// Reads the text of a variable that is YAML, too.
    /// - Parameter example: a text that is right.
    static func value(
        ofYAML text: String, such example: String, _ read: (Node, String, inout Reader) -> Value?
    ) throws(ValueMistake) -> Value {
        guard case .success(let document) = Document.parse(text), let root = document.root else {
            throw ValueMistake(description: "not understood; give it as in the file: `\(example)`")
        }
        var reader = Reader(document)
        guard let value = read(root, "the value", &reader), reader.notes.isEmpty else {
            throw ValueMistake(description: reader.notes.map(\.message).joined(separator: "; "))
        }
        return value
    }
}

extension ScalarSyntax where Value == String {
    /// The path of a folder.
    fileprivate static var folder: Self {
        let file = ScalarSyntax<NamedFile>.file(such: "/var/lib/acme")
        return ScalarSyntax("the path of a folder such as `/var/lib/acme`", write: { $0 }) { text in
            file.parse(text.count > 1 && text.hasSuffix("/") ? String(text.dropLast()) : text).then { .value($0.path) }
        }
    }

    /// The name of a request field that says nothing in HTTP, nor to this proxy.
    fileprivate static var subjectField: Self {
        let names = ScalarSyntax<String>.fieldName
        return ScalarSyntax("the name of a field such as `x-client-subject`", write: names.write) { text in
            names.parse(text)
                .then { name in
                    let bytes = ByteSlice(name)
                    if KnownField.recognise(bytes.span) != .other || name.hasPrefix("proxy-") {
                        return .refused(
                            "this field has a meaning of its own in HTTP; name one such as `x-client-subject`")
                    }
                    guard bytes.span.isPlainName else {
                        return .refused(
                            "many programs take this name for another; give one of letters, digits and hyphens, such as `x-client-subject`"
                        )
                    }
                    return .value(name)
                }
        }
    }
}
