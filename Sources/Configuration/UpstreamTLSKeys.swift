import Bytes
import TLS
import Upstream
import YAML

/// The keys for TLS with the servers of an upstream, and with the engines of the shared tier.
enum UpstreamTLSKeys {
    static let doc = """
        TLS with the servers that have https://: {server-name: app.internal, ca: /etc/ssl/ca.pem, verify: on, \
        client-certificate: {certificate: /own.pem, key: /own.key}}. server-name: the name that certificates must have, and \
        that is asked for (SNI); without it, the host of each server. ca: the authorities that are believed, in place of \
        those of the system (ca-certificates). verify: off believes every certificate, so that whoever is on the way can \
        answer and read; the log tells of it at each start. client-certificate: what is shown to servers that ask for one. Files are \
        PEM; a reload reads them again.
        """

    static let tls: ValueSyntax<UpstreamTLSSettings> = {
        let syntax = ValueSyntax<TLSPeerSettings?>.map("`tls`", from: TLSPeerSettings(), keys, or: word)
        @Sendable func read(_ node: Node, _ name: String, _ reader: inout Reader) -> TLSPeerSettings? {
            if case .mapping = node {
            } else if node.string != word {
                reader.note(
                    node.position, "`\(name)` is not \(node.kind); give keys such as `\(example)`, or `\(word)`")
                return nil
            }
            return syntax.read(node, name, &reader).map { $0 ?? TLSPeerSettings() }
        }
        return ValueSyntax(
            write: syntax.write,
            parse: { text throws(ValueMistake) in
                try ValueSyntax<TLSPeerSettings>.value(ofYAML: text, such: example, read)
            }, read: read)
    }()

    private static let word = "default"
    private static let example = "{ca: /etc/ssl/ca.pem}"

    private static let keys: [Key<UpstreamTLSSettings>] = [
        Key("server-name", \.serverName, given(ValueSyntax<String>(.serverName)), "The name of the certificates."),
        Key(
            "ca", \.authorities, given(ValueSyntax<NamedFile>(.file(such: "/etc/ssl/ca.pem"))),
            "Whose certificates are believed."),
        Key("verify", \.verifies, .onOrOff, "Whether certificates are compared."),
        Key("client-certificate", \.identity, given(.identity), "The certificate that is shown."),
    ]

    /// A value that has no word for `nil`: a file that does not set it has no such key.
    private static func given<Value>(_ syntax: ValueSyntax<Value>) -> ValueSyntax<Value?> {
        ValueSyntax(range: syntax.range, write: { $0.map(syntax.write) ?? [] }) { node, name, reader in
            syntax.read(node, name, &reader).map { .some($0) }
        }
    }

    /// Warnings about keys that have no effect.
    static func advise(on upstream: UpstreamSettings, _ node: Node, _ reader: inout Reader) {
        guard let group = node["tls"], case .mapping(let mapping) = group else { return }
        guard upstream.servers.contains(where: \.isSecure) else {
            // The shipped file has all defaults.
            if upstream.tls == UpstreamTLSSettings() { return }
            return reader.warn(
                group.position,
                "`tls` has no effect, since no server of `\(upstream.name)` has `https://`; give it one, or remove `tls`"
            )
        }
        warnOfAuthorities(upstream.tls, mapping, &reader)
    }

    /// Warns of authorities that are not asked.
    static func warnOfAuthorities(_ tls: TLSPeerSettings, _ mapping: Node.Mapping, _ reader: inout Reader) {
        guard !tls.verifies, let ca = mapping.pairs.first(where: { $0.key.string == "ca" }) else { return }
        reader.warn(ca.key.position, "`ca` has no effect with `verify: off`; remove one of them")
    }
}

extension ScalarSyntax where Value == String {
    /// The name that a server's certificate must have: a host, or an address.
    fileprivate static var serverName: Self {
        ScalarSyntax("a host such as `app.internal`, without a port", write: { $0 }) { text in
            HostSyntax.host(text.contains(":") && !text.hasPrefix("[") ? "[\(text)]" : text[...])
                .map { .value($0) } ?? .malformed
        }
    }
}
