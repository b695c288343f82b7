public import Libevent

/// One origin: its servers, and how patient we are with them.
///
/// A default stands here with its reason and nowhere else. The ranges a configuration file may choose from stand in
/// `Configuration`.
public struct UpstreamSettings: Sendable, Equatable {
    /// The name routes, metrics and the log call it by.
    public var name: String
    /// The origin's servers, used in turn. At least one.
    public var servers: [UpstreamServer]
    /// What `Host` tells them, with the port if it is not 80. `nil`: the host that was asked for, since links and
    /// redirections are made with it.
    public var host: String?
    /// Until the connection is established: one lost SYN (1 s) and one more (3 s) are forgiven.
    public var connectTimeout: Duration = .seconds(5)
    /// From the request's last byte, or the latest interim response, to the end of the response's head: slow origins
    /// are what we are for.
    public var firstByteTimeout: Duration = .seconds(60)
    /// Without a byte while a response arrives or a request is sent: what nginx and others allow, and origins that write
    /// a line now and then so as not to be cut off go by.
    public var noProgressTimeout: Duration = .seconds(60)
    /// How long an unused connection is kept: below the 60 s or more after which most origins close theirs, so that
    /// reuse seldom meets a dead one.
    public var idleTimeout: Duration = .seconds(30)
    /// Unused connections kept per loop.
    public var maxIdleConnections = 64
    /// Fetches, and so connections, at a time over all loops: what an ordinary origin bears. HAProxy (`maxconn`) also
    /// holds a slot for slow readers, but has no default limit; nginx spools to disk instead.
    public var maxConcurrentFetches = 256
    /// Fetches that wait for one of those slots; the next one gets 503.
    public var maxQueuedFetches = 10_000
    /// Whether an idempotent request (RFC 9110 §9.2.2) is tried once more on a fresh connection when a reused one was
    /// dead, and a safe one on the next server when a fresh one was closed before a response; and whether any goes to a
    /// fresh one that a reused one took nothing of.
    public var retriesDeadConnection = true
    /// The longest a resolved name is used before it is looked up again; less where the name servers say so: a name may
    /// move at any time, and asking for it costs little and no request waits for it while there are connections.
    public var resolveTTL: Duration = .seconds(30)
    /// Failures in a row after which a server is left alone.
    public var maxFailures = 3
    /// How long a failing server is left alone.
    public var failureCooldown: Duration = .seconds(10)
    /// Bytes of a response head, twice what we take from clients: origins are trusted more.
    public var maxHeadSize = 64 << 10

    /// - Parameter servers: at least one.
    public init(name: String, servers: [UpstreamServer]) {
        self.name = name
        self.servers = servers
    }

    /// What an installation begins with: a server on this machine.
    public static let local = UpstreamSettings(name: "origin", servers: [UpstreamServer(host: "127.0.0.1", port: 9000)])
}

/// One server of an origin, spoken to in plain HTTP/1.1.
public enum UpstreamServer: Sendable, Hashable, CustomStringConvertible {
    /// `host` is a name to resolve or an address, in lower case; IPv6 without brackets.
    case tcp(host: String, port: UInt16)
    /// A Unix socket on this machine. An absolute path of at most `SocketAddress.longestPath` bytes.
    case unix(path: String)

    /// - Parameter port: the default is the scheme's (RFC 9110 §4.2.1).
    public init(host: String, port: UInt16 = 80) { self = .tcp(host: host, port: port) }

    /// Where it listens, if nothing has to be looked up for that; `nil` for a name.
    public var address: SocketAddress? {
        switch self {
        case .tcp(let host, let port): SocketAddress(literal: host, port: port)
        case .unix(let path): .unix(path: path)
        }
    }

    /// What `Host` calls it where a client named no host. A path is none (RFC 9110 §7.2).
    public var host: String {
        switch self {
        case .tcp(let host, _): host.contains(":") ? "[\(host)]" : host
        case .unix: "localhost"
        }
    }

    /// `http://127.0.0.1:9000` or `unix:/path`.
    public var description: String {
        switch self {
        case .tcp(_, let port): "http://\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// `UpstreamSettings`' durations in nanoseconds, converted once.
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

/// For how long what a name resolved to is used, beside `UpstreamSettings.resolveTTL`. All in nanoseconds.
enum NameTimes {
    /// However short the name servers say: otherwise each connection would wait for a look-up. The shortest
    /// `resolve-ttl`, too.
    static let shortest: Int64 = 1_000_000_000
    /// How long the addresses of a name that cannot be looked up any more are used: the least of what RFC 8767 §5 advises.
    static let longestStale: Int64 = 24 * 3600 * 1_000_000_000
    /// How often such a name is asked for: as long as one look-up takes at most, so that one is always under way. RFC 8767
    /// §5 has 30 s, for resolvers with thousands of names.
    static let retryInterval: Int64 = 5_000_000_000

    /// - Parameters:
    ///   - timeToLive: what the name servers say; `nil`: they were not asked.
    ///   - longest: what the operator says.
    static func use(of timeToLive: Int64?, longest: Int64) -> Int64 {
        min(max(timeToLive ?? longest, shortest), longest)
    }
}

/// Connecting to a server that has several addresses (RFC 8305 §5).
enum AddressRace {
    /// How long an address has, in nanoseconds, before a connection to the next one is begun beside it: the
    /// recommendation of RFC 8305 §8.
    static let delay: Int64 = 250_000_000
    /// The most connections that one request waits for at a time, each with a descriptor: those that do not answer are
    /// remembered, so that few requests come so far.
    static let most = 4
}
