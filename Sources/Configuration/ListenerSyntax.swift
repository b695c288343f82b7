import Libevent
package import Routing
import TLS
import YAML

/// The syntax of `listen`.
extension ScalarSyntax where Value == ListenerSettings {
    /// An address to listen on, with `https://` before it if clients speak TLS there; `http://` says nothing more than
    /// the address alone. Also the syntax of `--listen`.
    package static var listener: ScalarSyntax<ListenerSettings> {
        let addresses = ScalarSyntax<SocketAddress>.address
        return ScalarSyntax(
            addresses.form, write: { ($0.isSecure ? "https://" : "") + addresses.write($0.address) }
        ) { text in
            guard let scheme = ["https://", "http://"].first(where: { text.lowercased().hasPrefix($0) }) else {
                return addresses.parse(text).then { .value(ListenerSettings($0)) }
            }
            var rest = text.dropFirst(scheme.count)
            if rest.hasSuffix("/") { rest.removeLast() }
            guard !rest.hasPrefix("unix:") else {
                return .refused(
                    "write a Unix socket without `\(scheme)`: `unix:/path`"
                        + (scheme == "https://" ? ", or `{address: unix:/path, tls: true}`" : ""))
            }
            return addresses.parse(String(rest))
                .then { address in
                    var listener = ListenerSettings(address)
                    listener.isSecure = scheme == "https://"
                    return .value(listener)
                }
        }
    }
}

extension ValueSyntax<[ListenerSettings]> {
    private static var keys: [Key<ListenerSettings>] {
        [
            Key("address", \.place, .listener, isRequired: true, "The address."),
            Key("tls", \.isSecure, .flag, "Whether clients speak TLS."),
            Key("client-certificates", \.clientCertificates, .word, "Whether clients show certificates."),
            Key("http2", \.speaksHTTP2, .flag, "Whether clients may speak HTTP/2."),
            Key("proxy-protocol", \.isProxied, .flag, "Whether each connection begins with a PROXY header."),
        ]
    }

    /// A list of addresses, and of maps such as `{address: 127.0.0.1:8080, proxy-protocol: true}`. A single one needs no
    /// list.
    static var listeners: Self {
        let (keys, single) = (keys, ValueSyntax<ListenerSettings>(.listener))
        let list = ValueSyntax<[ListenerSettings]>.list(of: .listener, atLeast: 1)
        let parse: (@Sendable (String) throws(ValueMistake) -> [ListenerSettings])? = { text throws(ValueMistake) in
            let listeners = try list.parse?(text) ?? []
            var known: Set<SocketAddress> = []
            for listener in listeners where !known.insert(listener.address).inserted {
                throw ValueMistake(
                    description: "`\(Spelling.shown("\(listener.address)"))` is there twice; remove one of them")
            }
            return listeners
        }
        return ValueSyntax(
            range: list.range, write: { ["[\($0.map(text).joined(separator: ", "))]"] }, parse: parse
        ) { node, name, reader in
            let nodes = node.elements
            guard !nodes.isEmpty else {
                reader.note(node.position, "`\(name)` is empty; give at least 1")
                return nil
            }
            var listeners: [ListenerSettings] = []
            var known: Set<SocketAddress> = []
            for node in nodes {
                var listener = ListenerSettings(ListenerSettings.blank)
                if case .mapping = node {
                    reader.read(node, as: keys, into: &listener, called: "a listener")
                    checkTLS(of: listener, in: node, &reader)
                } else {
                    listener = single.read(node, name, &reader) ?? listener
                }
                // The mistake in the address is noted already.
                if listener.address == ListenerSettings.blank { continue }
                guard known.insert(listener.address).inserted else {
                    reader.note(
                        node.position,
                        "`\(name)` has `\(Spelling.shown("\(listener.address)"))` twice; remove one of them")
                    continue
                }
                listeners.append(listener)
            }
            return listeners.isEmpty ? nil : listeners
        }
    }

    /// The scheme of the address and `tls` must agree, and only clients that speak TLS show certificates.
    private static func checkTLS(of listener: ListenerSettings, in node: Node, _ reader: inout Reader) {
        let address = node["address"]?.string?.lowercased() ?? ""
        if let tls = node["tls"], address.hasPrefix(listener.isSecure ? "http://" : "https://") {
            return reader.note(tls.position, "`address` says otherwise by its scheme; remove `tls`, or the scheme")
        }
        guard let certificates = node["client-certificates"], listener.clientCertificates != .off, !listener.isSecure
        else { return }
        reader.note(
            certificates.position,
            "only clients that speak TLS show certificates; add `tls: true`, or remove `client-certificates`")
    }

    private static func text(of listener: ListenerSettings) -> String {
        let isSocket = if case .unix = listener.address { true } else { false }
        let isPlain = !listener.isProxied && listener.clientCertificates == .off && listener.speaksHTTP2
        if isPlain, !listener.isSecure || !isSocket { return quoted(ScalarSyntax.listener.write(listener)) }
        var parts = ["address: \(quoted(ScalarSyntax.address.write(listener.address)))"]
        if listener.isSecure { parts.append("tls: true") }
        if listener.clientCertificates != .off {
            parts.append("client-certificates: \(listener.clientCertificates.rawValue)")
        }
        if !listener.speaksHTTP2 { parts.append("http2: false") }
        if listener.isProxied { parts.append("proxy-protocol: true") }
        return "{\(parts.joined(separator: ", "))}"
    }
}

extension ListenerSettings {
    /// Stands in for an address that has a mistake.
    fileprivate static let blank = SocketAddress.unix(path: "")

    /// The address, perhaps with a scheme.
    fileprivate var place: ListenerSettings {
        get { self }
        set {
            address = newValue.address
            isSecure = isSecure || newValue.isSecure
        }
    }
}
