package import Libevent
package import TLS

/// One origin: its servers, and the limits and timeouts for them.
///
/// Each default stands only here, with its reason. The ranges that a configuration file may choose from stand in
/// `Configuration`.
package struct UpstreamSettings: Sendable, Equatable {
    /// The origin's name in routes, in metrics and in the log.
    package var name: String
    /// The origin's servers. At least one.
    package var servers: [UpstreamServer]
    /// How the servers share the requests.
    package var balance = Balance.roundRobin
    /// The checks of the servers; `nil`: no checks.
    package var health: HealthSettings?
    /// When a request is sent to another server.
    package var retry = RetrySettings()
    /// How long the share of a server that is back grows to its full size.
    package var slowStart: Duration = .zero
    /// How often the rest of a response that broke off is asked for; 0: never. Five times are a server that is
    /// restarted, and a network that fails now and then.
    package var resume = 5
    /// How servers with TLS are judged.
    package var tls = UpstreamTLSSettings()
    /// The value of `Host` in requests to the servers, with the port if it is not that of the scheme. `nil`: the host that the client
    /// asked for, since origins make links and redirections with it.
    package var host: String?
    /// The time until a connection is established: one lost SYN (1 s) and a second one (3 s) are forgiven.
    package var connectTimeout: Duration = .seconds(5)
    /// The time from the request's last byte, or from the latest interim response, to the end of the response's head: a
    /// caching proxy is made for slow origins.
    package var firstByteTimeout: Duration = .seconds(60)
    /// The time without a byte while a response arrives or a request is sent: the default of nginx and others. Origins
    /// rely on that default when they write a line now and then to keep the connection open.
    package var noProgressTimeout: Duration = .seconds(60)
    /// How long an unused connection is kept: below the 60 s or more after which most origins close their connections,
    /// so that reuse seldom meets a dead connection.
    package var idleTimeout: Duration = .seconds(30)
    /// The most unused connections kept per loop.
    package var maxIdleConnections = 64
    /// The most fetches, and so connections, at a time over all loops: an ordinary origin bears so many. HAProxy
    /// (`maxconn`) also holds a slot for slow readers, but has no default limit; nginx spools to disk instead.
    package var maxConcurrentFetches = 256
    /// The most fetches that wait for such a slot; the next fetch gets 503.
    package var maxQueuedFetches = 10_000
    /// Whether an idempotent request (RFC 9110 §9.2.2) is sent once more on a new connection if a reused one was dead.
    /// Also whether any request is sent on a new connection if a reused one took no byte of it.
    package var retriesDeadConnection = true
    /// The longest time that a resolved name is used before it is looked up again; shorter if the name servers say so.
    /// A name may move at any time; a look-up costs little, and no request waits for it while there are connections.
    package var resolveTTL: Duration = .seconds(30)
    /// Failures in a row after which a server is left alone.
    package var maxFailures = 3
    /// How long a failing server is left alone.
    package var failureCooldown: Duration = .seconds(10)
    /// The most bytes of a response head: twice the limit for request heads, since origins are trusted more.
    package var maxHeadSize = 64 << 10

    /// - Parameter servers: at least one.
    package init(name: String, servers: [UpstreamServer]) {
        self.name = name
        self.servers = servers
    }

    /// The upstream of a new installation: a server on this machine.
    package static let local = UpstreamSettings(
        name: "origin", servers: [UpstreamServer(host: "127.0.0.1", port: 9000)])
}

/// TLS to the servers of an origin.
package typealias UpstreamTLSSettings = TLSPeerSettings

/// One server of an origin, and its share of the requests.
package struct UpstreamServer: Sendable, Hashable, CustomStringConvertible {
    /// Where the server listens.
    package enum Location: Sendable, Hashable {
        /// `host` is a name to resolve or an address, in lower case; IPv6 without brackets.
        case tcp(host: String, port: UInt16)
        /// A Unix socket on this machine. An absolute path of at most `SocketAddress.longestPath` bytes.
        case unix(path: String)
    }

    /// Where the server listens.
    package var location: Location
    /// The server's share of the requests in proportion to the others': 1 to 1,000. Each address of a name has it.
    package var weight = 1
    /// Whether the server speaks TLS.
    package var isSecure = false
    /// Whether the server is asked only while none of the others can be used.
    package var isBackup = false

    package init(_ location: Location) { self.location = location }

    /// - Parameter port: `nil`: that of the scheme.
    package init(host: String, port: UInt16? = nil, isSecure: Bool = false) {
        self.init(.tcp(host: host, port: port ?? Self.defaultPort(isSecure: isSecure)))
        self.isSecure = isSecure
    }

    /// The port of `http` or of `https` (RFC 9110 §4.2.1, §4.2.2).
    package static func defaultPort(isSecure: Bool) -> UInt16 { isSecure ? 443 : 80 }
    /// The port of the server's scheme.
    package var defaultPort: UInt16 { Self.defaultPort(isSecure: isSecure) }

    /// - Parameter text: `HOST:PORT`, IPv6 in brackets, perhaps from an untrusted source.
    package init?(hostAndPort text: String) {
        guard text.utf8.count <= 300, let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...]), port > 0
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, host.utf8.allSatisfy({ Self.isPartOfName($0) }) else { return nil }
        self.init(host: host.lowercased(), port: port)
    }

    private static func isPartOfName(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || [0x2d, 0x2e, 0x3a, 0x5f].contains(byte)
    }

    /// `HOST:PORT`, IPv6 in brackets. A Unix socket has only its host.
    package var hostAndPort: String {
        switch location {
        case .tcp(_, let port): "\(host):\(port)"
        case .unix: host
        }
    }

    /// A server at a Unix socket.
    package static func unix(path: String) -> UpstreamServer { UpstreamServer(.unix(path: path)) }

    /// The address of the server, if no look-up is needed for it; `nil` for a name.
    package var address: SocketAddress? {
        switch location {
        case .tcp(let host, let port): SocketAddress(literal: host, port: port)
        case .unix(let path): .unix(path: path)
        }
    }

    /// The value of `Host` if the client named no host. A socket's path is no host (RFC 9110 §7.2).
    package var host: String {
        switch location {
        case .tcp(let host, _): host.contains(":") ? "[\(host)]" : host
        case .unix: "localhost"
        }
    }

    /// `http://127.0.0.1:9000`, `https://127.0.0.1:9443` or `unix:/path`.
    package var description: String {
        switch location {
        case .tcp(_, let port): "\(isSecure ? "https" : "http")://\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// How an origin's servers share the requests.
package enum Balance: String, Sendable, Equatable, CaseIterable {
    /// In turn, in proportion to their weights.
    case roundRobin = "round-robin"
    /// Of two servers chosen at random, the one with less to wait for: its requests in flight for its weight, times how
    /// long a response took there lately.
    case leastRequests = "least-requests"
    /// By the key of the cache: each key has a server of its own, and only the keys of a server that leaves move
    /// (rendezvous hashing: Thaler, Ravishankar, 'A name-based mapping scheme for rendezvous', 1996).
    case hash
}

/// The failures after which a request is sent to another server, and how often that happens.
package struct RetrySettings: Sendable, Equatable {
    /// Failures without a status, after which a request is sent to another server.
    package struct Causes: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// A connection was closed before a response, or the response was malformed.
        package static let error = Causes(rawValue: 1)
        /// No response came in time.
        package static let timeout = Causes(rawValue: 2)
    }

    /// Failures that cause a retry, and count against a server.
    package var causes: Causes = [.error, .timeout]
    /// Statuses of responses that cause a retry, and count against a server: 429, or 500 to 599, without
    /// duplicates.
    package var statuses: [UInt16] = [502, 503, 504]
    /// The lowest status that may be among them.
    static let leastStatus: UInt16 = 429
    /// How often a request is sent to another server.
    package var attempts = 1
    /// Retries of the last 10 s in percent of the requests of that time. 30 of them are always allowed.
    package var budget = 10

    package init() {}
}

/// The checks of an origin's servers.
package struct HealthSettings: Sendable, Equatable {
    /// The path, with a query if there is one, that is asked for.
    package var path: String
    /// The time between two checks of a server, to which up to a tenth is added or from which it is taken.
    package var interval: Duration = .seconds(5)
    /// The time until the whole response has come; at most `interval`.
    package var timeout: Duration = .seconds(2)
    /// The statuses of a server in health.
    package var expected: ClosedRange<UInt16> = 200...399
    /// Text that the first 64 KiB of the content must contain; empty: any content will do.
    package var body = ""
    /// The `Host` of the check; empty: the upstream's `host`, else the server's own.
    package var host = ""
    /// Failed checks in a row after which a server is not used.
    package var failures = 3
    /// Successful checks in a row after which it is used again.
    package var successes = 2

    package init(path: String) { self.path = path }
}

/// The durations of `UpstreamSettings` in nanoseconds, converted once.
struct UpstreamTimeouts {
    let connect: Int64
    let firstByte: Int64
    let noProgress: Int64
    let idle: Int64

    init(_ settings: UpstreamSettings) {
        connect = settings.connectTimeout.nanoseconds
        firstByte = settings.firstByteTimeout.nanoseconds
        noProgress = settings.noProgressTimeout.nanoseconds
        idle = settings.idleTimeout.nanoseconds
    }
}

/// For how long resolved addresses are used, apart from `UpstreamSettings.resolveTTL`. All in nanoseconds.
enum NameTimes {
    /// The lower bound for the time that the name servers say: otherwise each connection would wait for a look-up. Also
    /// the least `resolve-ttl`.
    static let shortest: Int64 = 1_000_000_000
    /// How long the addresses of a name are used that cannot be looked up any more: the minimum that RFC 8767 §5
    /// advises.
    static let longestStale: Int64 = 24 * 3600 * 1_000_000_000
    /// The interval between look-ups of such a name: the longest time that one look-up takes, so that one is always in
    /// flight. RFC 8767 §5 has 30 s, for resolvers with thousands of names.
    static let retryInterval: Int64 = 5_000_000_000

    /// - Parameters:
    ///   - timeToLive: the time that the name servers say; `nil`: they were not asked.
    ///   - longest: the operator's setting.
    static func use(of timeToLive: Int64?, longest: Int64) -> Int64 {
        min(max(timeToLive ?? longest, shortest), longest)
    }
}
