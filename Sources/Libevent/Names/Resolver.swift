import CLibevent
import Glibc

/// Looks up the addresses of names, on its loop, through c-ares: over UDP with EDNS, and over TCP if an answer was
/// truncated (RFC 7766).
///
/// `init` and `readFilesAgain` read the hosts file and `resolv.conf` (servers, search list, options). Without a usable
/// `resolv.conf` the server is 127.0.0.1:53, as in resolver(5). The resolver caches no answers: an answer carries its
/// time to live, and the caller decides about caching.
public final class Resolver {
    /// The address families to look up.
    public enum Family: Sendable {
        case ipv4, ipv6, any
    }

    /// The system's files, which tests replace, and the time limit.
    public struct Settings: Sendable {
        /// The longest time a look-up takes, even if `resolv.conf` allows more; in nanoseconds.
        public var timeout: Int64 = 5_000_000_000
        public var resolvConf = "/etc/resolv.conf"
        public var hosts = "/etc/hosts"
        public init() {}
    }

    /// The addresses of a name.
    public struct Found: Hashable, Sendable {
        /// The addresses in the order in which to try them: each once, IPv4 and IPv6 in turn (RFC 8305 §4). At least
        /// one in an answer.
        public private(set) var addresses: [SocketAddress]
        /// The time to live in nanoseconds, from the name servers; `nil` if they were not asked.
        public private(set) var timeToLive: Int64?

        /// - Parameter timeToLive: nanoseconds.
        public init(_ addresses: [SocketAddress], timeToLive: Int64? = nil) {
            self.addresses = addresses
            self.timeToLive = timeToLive
        }

        mutating func add(_ other: Found) {
            addresses += other.addresses
            if let time = other.timeToLive { timeToLive = min(timeToLive ?? time, time) }
        }

        func inOrder(port: UInt16) -> Found {
            var seen: Set<SocketAddress> = []
            let all = addresses.map { $0.withPort(port) }.filter { seen.insert($0).inserted }
            return Found(
                Array(SocketAddress.familiesInTurn(all).prefix(Resolver.mostAddresses)), timeToLive: timeToLive)
        }
    }

    /// The outcome of a look-up.
    public typealias Answer = Result<Found, ResolveError>

    /// The most addresses of a name that are used. An answer of some kilobytes has room for them, and each may cost a
    /// connection.
    static let mostAddresses = 256
    /// How long to wait for the other family's addresses when one family's have come, in nanoseconds. Some name servers
    /// never answer questions for IPv6 addresses (RFC 4074 §4.1). RFC 8305 §3 waits 50 ms for each connection; an
    /// answer of this resolver is used for seconds to come.
    static let longestDelay: Int64 = 300_000_000
    /// The most bytes of a hosts file that are read. Long hosts files, which block advertisements, have about three
    /// megabytes.
    private static let longestHostsFile = 16 << 20

    /// The loop on which the resolver is used and on which it answers.
    public let loop: EventLoop
    private let settings: Settings
    private var servers: NameServers

    /// Reads the files of `settings`, blocking. Missing or malformed files are not errors.
    public init(on loop: EventLoop, settings: Settings = Settings()) {
        self.loop = loop
        self.settings = settings
        servers = Self.readFiles(loop, settings)
    }

    private static func readFiles(_ loop: EventLoop, _ settings: Settings) -> NameServers {
        NameServers(
            loop, ResolvConf(KernelFile.text(of: settings.resolvConf) ?? ""),
            hosts: HostsFile(KernelFile.bytes(of: settings.hosts, most: longestHostsFile) ?? []),
            timeout: settings.timeout)
    }

    /// Reads the files again, blocking. Look-ups that begin from now on use them. On the loop's thread.
    public func readFilesAgain() { servers = Self.readFiles(loop, settings) }

    /// Looks up `host`, a name or an IP address without brackets. On the loop's thread.
    ///
    /// `completion` is called once, on the loop, never inside this call. A success has at least one address, each with
    /// `port`. The answers for IP addresses, for `localhost` (RFC 6761 §6.3) and for names in the hosts file come at
    /// the end of the current iteration. After `cancel`, `completion` is not called.
    @discardableResult
    public func resolve(
        _ host: String, port: UInt16, family: Family = .any, completion: @escaping (Answer) -> Void
    ) -> NameLookup {
        askOthersFirst()
        let lookup = NameLookup(servers, port, family, completion)
        if let answer = answerWithoutAsking(host, port, family) {
            lookup.answerLater(answer)
        } else {
            lookup.start(host)
        }
        return lookup
    }

    /// Moves a dead first server behind the others; otherwise each look-up would wait for it.
    private func askOthersFirst() {
        guard servers.firstSeemsDead else { return }
        var conf = servers.conf
        conf.putFirstServerLast()
        servers = NameServers(loop, conf, hosts: servers.hosts, timeout: settings.timeout)
    }

    private func answerWithoutAsking(_ host: String, _ port: UInt16, _ family: Family) -> Answer? {
        guard !host.isEmpty, host.utf8.count <= 254, !host.utf8.contains(0) else { return .failure(.badName) }
        let name = host.lowercased()
        var known: [SocketAddress]
        if let literal = SocketAddress(literal: host, port: port) {
            known = [literal]
        } else if name == "localhost" || name.hasSuffix(".localhost") {
            known = [.ipv4(.loopback, port: port), .ipv6(.loopback, port: port)]
        } else {
            known = servers.hosts.addresses(of: name)
            // The name servers may know addresses of the other family.
            guard known.contains(where: family.includes) else { return nil }
        }
        known.removeAll { !family.includes($0) }
        return known.isEmpty ? .failure(.notFound) : .success(Found(known).inOrder(port: port))
    }
}

extension Resolver.Family {
    func includes(_ address: SocketAddress) -> Bool {
        switch (self, address) {
        case (.any, _), (.ipv4, .ipv4), (.ipv6, .ipv6): true
        case (.ipv4, _), (.ipv6, _): false
        }
    }

    /// The families that one question covers.
    var each: [Resolver.Family] {
        switch self {
        case .ipv4, .ipv6: [self]
        case .any: [.ipv4, .ipv6]
        }
    }

    var code: Int32 {
        switch self {
        case .ipv4: AF_INET
        case .ipv6: AF_INET6
        case .any: AF_UNSPEC
        }
    }
}

extension SocketAddress {
    /// IPv4 and IPv6 addresses in turn, each family in its order. If one family does not work, the next address is of
    /// the other (RFC 8305 §4).
    public static func familiesInTurn(_ addresses: [SocketAddress]) -> [SocketAddress] {
        let ipv4 = addresses.filter { if case .ipv4 = $0 { true } else { false } }
        let others = addresses.filter { if case .ipv4 = $0 { false } else { true } }
        var inTurn: [SocketAddress] = []
        for index in 0..<max(ipv4.count, others.count) {
            if index < ipv4.count { inTurn.append(ipv4[index]) }
            if index < others.count { inTurn.append(others[index]) }
        }
        return inTurn
    }
}
