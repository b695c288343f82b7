import CLibevent
import Glibc

/// Looks up the addresses of names, on its loop, through c-ares: over UDP with EDNS, and over TCP where an answer was
/// truncated (RFC 7766).
///
/// The hosts file and `resolv.conf` (servers, search list, options) are read when it is made and when it is told to;
/// without a usable `resolv.conf` the server is 127.0.0.1:53, as in resolver(5). Nothing is kept here: an answer says how
/// long it holds, and whoever caches decides.
public final class Resolver {
    /// Which addresses are wanted.
    public enum Family: Sendable {
        case ipv4, ipv6, any
    }

    /// The system's files, which tests replace.
    public struct Settings: Sendable {
        /// The longest a look-up takes, whatever `resolv.conf` says; in nanoseconds.
        public var timeout: Int64 = 5_000_000_000
        public var resolvConf = "/etc/resolv.conf"
        public var hosts = "/etc/hosts"
        public init() {}
    }

    /// What was found of a name.
    public struct Found: Hashable, Sendable {
        /// In the order in which to try them: each once, IPv4 and IPv6 in turn (RFC 8305 §4). At least one, where it is an
        /// answer.
        public private(set) var addresses: [SocketAddress]
        /// Nanoseconds for which the name servers say that they hold; `nil`: they were not asked.
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

    /// What became of a look-up.
    public typealias Answer = Result<Found, ResolveError>

    /// The most addresses of a name that are used: they have room in an answer of some kilobytes, and each may cost a
    /// connection.
    static let mostAddresses = 256
    /// How long the addresses of one family wait for those of the other, in nanoseconds. Some name servers never answer
    /// questions for IPv6 addresses (RFC 4074 §4.1). RFC 8305 §3 waits 50 ms for each connection; this answer is used for
    /// seconds to come.
    static let longestDelay: Int64 = 300_000_000
    /// The most bytes of a hosts file that are read: the long ones, which block advertisements, have some three megabytes.
    private static let longestHostsFile = 16 << 20

    /// The loop on which the resolver is used and answers.
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

    /// Reads the files again, blocking, for look-ups that begin from now on. On the loop's thread.
    public func readFilesAgain() { servers = Self.readFiles(loop, settings) }

    /// Looks up `host`, a name or an IP address without brackets. On the loop's thread.
    ///
    /// `completion` is called once, on the loop, never inside this call, with at least one address, each with `port`;
    /// IP addresses, `localhost` (RFC 6761 §6.3) and what the hosts file names at the end of the current iteration. After
    /// `cancel` it is not called.
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

    /// Otherwise each look-up would wait for a server that is dead.
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

    /// The families that one question is about.
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
    /// IPv4 and IPv6 addresses in turn, each in their order, so that where one family does not work the next address is
    /// of the other (RFC 8305 §4).
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
