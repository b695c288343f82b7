package import Bytes
package import TLS
package import Upstream

/// The tier that several machines share: where its engine is (Redis or Valkey), and the limits of this machine there.
///
/// Each default stands only here, with its reason. The ranges that a configuration file may choose from stand in
/// `Configuration`. `ProxySettings.sharedTier` is `nil` if there is no tier.
package struct SharedTierSettings: Sendable, Equatable {
    /// Where the engine is. Empty: there is no tier. Several: nodes of one cluster, all of which have the same user and
    /// password; any one that answers names the others.
    package var engines: [RedisLocation] = []
    /// How certificates of the engine are judged, if it speaks TLS.
    package var tls = TLSPeerSettings()
    /// The beginning of all keys, and of the name of the purge log: ASCII letters, digits and `-._:`, at most 32 bytes.
    /// Short, since each key has it.
    package var prefix = "co"
    /// The most time that the engine may add to a request: one limit for a look-up and for the lead that follows. An
    /// engine in the same data centre answers in less than 1 ms.
    package var timeout: Duration = .milliseconds(20)
    /// How long a machine leads a fetch without saying so again, which it does after each third of that time: others
    /// take over from one that died that much later. At least three times `timeout`.
    package var lease: Duration = .seconds(3)
    /// The most bytes of a body that is written to the engine. Larger ones would displace thousands of small ones.
    package var maxObjectSize = 8 << 20
    /// Where other machines reach this one, over plain HTTP at a host and a port, for bodies larger than that. `nil`:
    /// each machine fetches these itself.
    package var advertised: UpstreamServer?
    /// The file with the secret by which machines know one another's heads and bodies. `nil`: all that is in the engine
    /// is trusted as an origin is.
    package var secretFile: NamedFile?

    package init() {}

    /// Whether the engine speaks TLS.
    package var isSecure: Bool { engines.contains(where: \.isSecure) }

    /// The fewest bytes of a secret: as many as the digest of HMAC-SHA-256 has (RFC 2104 §3).
    package static let fewestSecretBytes = 32

    /// The bytes of the secret: the file without the line end at its end, which some editors add. `nil` without a file.
    package var secret: ByteSlice? {
        guard let content = secretFile?.content else { return nil }
        let (bytes, lineEnd) = (content.span, [UInt8(ascii: "\r"), UInt8(ascii: "\n")])
        var count = bytes.count
        while count > 0, lineEnd.contains(bytes[count - 1]) { count -= 1 }
        return content[0..<count]
    }
}

extension ProxySettings {
    /// The settings of the tier that is shared with other machines; `nil` if there is none.
    package var sharedTier: SharedTierSettings? { shared.engines.isEmpty ? nil : shared }
}

/// A server of the engine, and the user that logs in there.
package struct RedisLocation: Sendable, Hashable {
    /// Where the server listens.
    package enum Place: Sendable, Hashable {
        /// `host` is a name to resolve or an address, in lower case; IPv6 without brackets.
        case tcp(host: String, port: UInt16)
        /// A Unix socket on this machine. An absolute path of at most `SocketAddress.longestPath` bytes.
        case unix(path: String)
    }

    /// A user of the engine.
    package struct Login: Sendable, Hashable {
        /// The user of a server that has only a password (`requirepass`).
        package static let defaultUser = "default"

        /// Not empty.
        package var user: String
        /// Not empty.
        package var password: String

        package init(user: String = Self.defaultUser, password: String) {
            self.user = user
            self.password = password
        }
    }

    /// The port of Redis and of Valkey.
    package static let ordinaryPort: UInt16 = 6379

    /// Where the server listens.
    package var place: Place
    /// The user that logs in; `nil`: nobody does.
    package var login: Login?
    /// The number of the database; 0 in a cluster, which has no other.
    package var database = 0
    /// Whether the server speaks TLS; never at a Unix socket.
    package var isSecure = false

    package init(_ place: Place) { self.place = place }
}

extension RedisLocation: CustomStringConvertible {
    /// The URL without the user and the password, for messages.
    package var description: String {
        switch place {
        case .tcp(let host, let port):
            let name = host.contains(":") ? "[\(host)]" : host
            return "redis\(isSecure ? "s" : "")://\(name):\(port)\(database == 0 ? "" : "/\(database)")"
        case .unix(let path): return "unix:\(path)"
        }
    }
}

extension RedisLocation.Login: CustomStringConvertible {
    /// The user alone: a password is not for messages.
    package var description: String { user }
}
