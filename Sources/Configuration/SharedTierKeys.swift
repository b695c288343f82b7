import Bytes
import Routing
import TLS
import Upstream
import YAML

/// The keys of the tier that several machines share.
enum SharedTierKeys {
    static let doc = """
        What this machine and others share in a server or cluster of Redis (7 or later) or Valkey: each response is \
        fetched once for all of them, and a purge on one removes it from all. What is for one client alone never gets \
        there. While the engine is down or slow, each machine serves as if there were no tier. docs/shared-tier.md has \
        layouts, the rights that the engine's user needs, and what is lost when what fails.
        """

    static let all: [Key<Settings>] = [
        Key(
            "engine", \.proxy.shared.engines, .engines,
            """
            redis://HOST:PORT, or rediss:// for TLS, redis://USER:PASSWORD@HOST:PORT/DATABASE, unix:/path or unix://USER:PASSWORD@/path; \
            without a user, redis://:PASSWORD@HOST is that of the user default. In a user or password, characters other \
            than letters, digits and -._~ are percent-encoded. A list names nodes of one cluster, of which any one that \
            answers names the others. none: nothing is shared.
            """),
        Key(
            "tls", \.proxy.shared.tls, UpstreamTLSKeys.tls,
            """
            TLS with an engine that has rediss://, with the keys of `tls` in an upstream: {server-name: redis.internal, ca: \
            /etc/ssl/ca.pem, verify: on, client-certificate: {certificate: /own.pem, key: /own.key}}. Without server-name, \
            the certificate of each server, and of each node of a cluster, is for the host by which it is reached: nodes \
            mostly name each other by addresses. Without ca, the authorities of the system are believed. verify: off \
            believes everybody.
            """),
        Key(
            "prefix", \.proxy.shared.prefix, .keyPrefix,
            """
            The beginning of all keys in the engine. Machines with the same prefix share; sites that share an engine, \
            but nothing else, each need their own.
            """),
        Key(
            "timeout", \.proxy.shared.timeout, .duration(.milliseconds(1) ... .seconds(1)),
            """
            The most that the engine may delay a request; then this machine goes on alone. After 5 failures in a row it \
            is not asked, until it answers a probe, of which there is one each second.
            """),
        Key(
            "lease", \.proxy.shared.lease, .duration(.milliseconds(500) ... .seconds(60)),
            """
            How long the others wait for a machine that fetches for all and shows no life; then one of them fetches. At \
            least three times `timeout`.
            """),
        Key(
            "max-object", \.proxy.shared.maxObjectSize, .size(0...1 << 30),
            """
            Maximum size of a body in the engine. Larger ones are not stored there: other machines read them from the \
            one that fetches, if it says where (advertise), or fetch for themselves.
            """),
        Key(
            "advertise", \.proxy.shared.advertised, .peerURL,
            """
            The URL at which the other machines reach this one, such as http://10.0.0.3:8082: one of the addresses in \
            `listen`, which should be open to these machines only. Needs `secret-file`. none: no other machine reads from \
            this one.
            """),
        Key(
            "secret-file", \.proxy.shared.secretFile, .optional(.file(such: "/etc/coalesced/shared-secret"), "none"),
            """
            A file with a secret of at least 32 bytes, the same on all machines, for an engine that others can write to: \
            what is in the engine without its signature (HMAC-SHA-256) is ignored. none: nothing is signed.
            """),
    ]
}

extension Settings {
    /// The mistake in how the times of the shared tier relate, if there is one. The default of `timeout` fits each lease,
    /// so the operator gave another.
    var sharedTimesMistakes: [(key: String, message: String)] {
        let (shared, text) = (proxy.shared, ScalarSyntax<Duration>.duration(.zero ... .seconds(60)).write)
        guard shared.timeout * 3 > shared.lease else { return [] }
        let message =
            "`timeout` (\(text(shared.timeout))) is longer than a third of `lease` (\(text(shared.lease))), "
            + "after which a lease is renewed; lower the one, or raise the other"
        return [("shared.timeout", message)]
    }

    /// Warnings about a secret that everybody on this machine can read.
    func openSecrets(_ files: Files?) -> [(key: String, message: String)] {
        guard let path = proxy.shared.secretFile?.path, files?.isReadableByAll(path) == true else { return [] }
        return [
            (
                SharedTierKeys.secretFile,
                "`secret-file: \(Spelling.shown(path))` can be read by every user of this machine; remove that right, as `chmod o-r` does"
            )
        ]
    }
}

extension SharedTierKeys {
    static let secretFile = "shared.secret-file"

    /// Keys that have no effect, since no engine, or no secret, is named.
    static func checkUse(of settings: Settings, in root: Node?, _ reader: inout Reader) {
        if settings.proxy.shared.advertised != nil, settings.proxy.shared.secretFile == nil,
            case .mapping(let mapping)? = root?["shared"],
            let pair = mapping.pairs.first(where: { $0.key.string == "advertise" })
        {
            reader.warn(
                pair.key.position,
                "`advertise` has no effect without `secret-file`: whoever can write to the engine could have this machine ask any other"
            )
        }
        if let group = root?["shared"]?["tls"], case .mapping(let mapping) = group {
            UpstreamTLSKeys.warnOfAuthorities(settings.proxy.shared.tls, mapping, &reader)
            let isMeant = settings.proxy.sharedTier != nil && settings.proxy.shared.tls != TLSPeerSettings()
            if isMeant, !settings.proxy.shared.isSecure {
                reader.warn(
                    group.position,
                    "`tls` has no effect, since the engine has no `rediss://`; give it that, or remove `tls`")
            }
        }
        guard settings.proxy.sharedTier == nil, let group = root?["shared"], case .mapping(let mapping) = group,
            group["engine"] == nil, let first = mapping.pairs.first
        else { return }
        reader.warn(
            first.key.position,
            "`shared` has no `engine`, so nothing is shared; add one such as `redis://127.0.0.1:6379`, or remove `shared`"
        )
    }
}

extension ScalarSyntax where Value == String {
    private static var longestPrefix: Int { 32 }

    /// The beginning of keys of Redis.
    fileprivate static var keyPrefix: Self {
        ScalarSyntax(
            "letters, digits and `-._:` such as `co`", range: "1 to \(longestPrefix) characters", write: { $0 }
        ) { text in
            if text.contains(where: { "{}".contains($0) }) {
                return .refused("braces in a key choose its node of a cluster; give letters, digits and `-._:`")
            }
            let isPrefix = text.utf8.allSatisfy {
                isDigits(String(Unicode.Scalar($0))) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20)
                    || "-._:".utf8.contains($0)
            }
            guard isPrefix, !text.isEmpty else { return .malformed }
            return text.utf8.count <= longestPrefix ? .value(text) : .outOfRange
        }
    }
}

extension ScalarSyntax where Value == UpstreamServer? {
    /// Where other machines reach this one: `http://host:port`.
    fileprivate static var peerURL: Self {
        .optional(
            ScalarSyntax<UpstreamServer>(
                "a URL such as `http://10.0.0.3:8082`", write: ScalarSyntax<UpstreamServer>.server.write
            ) { text in
                if text.lowercased().hasPrefix("https://") {
                    return .refused(
                        "machines read from each other in plain HTTP; use `http://` in a network of their own")
                }
                guard text.lowercased().hasPrefix("http://") else { return .malformed }
                let rest = text.dropFirst("http://".count)
                let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
                guard !authority.contains(where: { "/?#@".contains($0) }) else {
                    return .refused("other machines add the path and have no password; give a host and a port only")
                }
                guard let (host, port) = HostSyntax.authority(authority) else { return .malformed }
                if ["0.0.0.0", "::"].contains(host) {
                    return .refused("other machines cannot reach this address; give one that this machine has")
                }
                return .value(port.map { UpstreamServer(host: host, port: $0) } ?? UpstreamServer(host: host))
            }, "none")
    }
}
