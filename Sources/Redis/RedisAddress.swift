package import Libevent

/// The place where an engine listens, and the login for it.
package struct RedisAddress: Hashable, Sendable {
    /// The engine's end of the connection.
    package enum Location: Hashable, Sendable {
        /// `host`: a name, or an IP address without brackets.
        case tcp(host: String, port: UInt16)
        case unix(path: String)
    }

    /// The port of an engine whose address names none.
    package static let usualPort: UInt16 = 6379

    /// The engine's end of the connection.
    package var location: Location
    /// `nil`: the engine's user `default`.
    package var user: String?
    /// `nil`: the engine asks for no password.
    package var password: String?
    /// The number of the database. A cluster has only 0.
    package var database: Int
    /// Whether the engine speaks TLS there.
    package var isSecure: Bool

    /// An address in its parts.
    package init(
        _ location: Location, user: String? = nil, password: String? = nil, database: Int = 0, isSecure: Bool = false
    ) {
        self.location = location
        self.user = user
        self.password = password
        self.database = database
        self.isSecure = isSecure
    }

    /// The engine alone, without a login and a database.
    package var engine: RedisAddress { RedisAddress(location, isSecure: isSecure) }

    /// The name or the address of the engine's machine; of a Unix socket, this one.
    var host: String {
        switch location {
        case .tcp(let host, _): host
        case .unix: "localhost"
        }
    }

    /// The address for a connection, if no name has to be looked up.
    package var literal: SocketAddress? {
        switch location {
        case .tcp(let host, let port): SocketAddress(literal: host, port: port)
        case .unix(let path): .unix(path: path)
        }
    }
}

extension RedisAddress: CustomStringConvertible {
    /// The address as a URL, for logs: stars stand for the password, and no byte is escaped.
    package var description: String {
        let login = password == nil ? "" : "\(user ?? ""):***@"
        switch location {
        case .unix(let path):
            return "unix:\(login.isEmpty ? "" : "//\(login)")\(path)\(database == 0 ? "" : "?db=\(database)")"
        case .tcp(let host, let port):
            let host = host.contains(":") ? "[\(host)]" : host
            return "redis\(isSecure ? "s" : "")://\(login)\(host):\(port)\(database == 0 ? "" : "/\(database)")"
        }
    }
}
