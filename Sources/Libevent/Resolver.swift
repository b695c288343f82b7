import CLibevent
import Glibc

/// Looks up the addresses of names, on its loop, through libevent's evdns.
///
/// The hosts file and `resolv.conf` (servers, search list, ndots, timeouts) are read when it is made and when it is
/// told to; without a usable `resolv.conf` the server is 127.0.0.1:53, as in resolver(5). evdns asks over UDP and does
/// not tell how long an answer is valid, so nothing is kept here: whoever caches decides for how long.
@safe public final class Resolver {
    /// Which addresses are wanted.
    public enum Family: Sendable {
        case ipv4, ipv6
        /// Both; IPv4 addresses come first.
        case any
    }

    /// The system's files, which tests replace.
    public struct Settings: Sendable {
        /// The longest a look-up takes, whatever `resolv.conf` says; in nanoseconds.
        public var timeout: Int64 = 5_000_000_000
        public var resolvConf = "/etc/resolv.conf"
        public var hosts = "/etc/hosts"
        public init() {}
    }

    /// The addresses of a name, in the order in which to try them: at least one.
    public typealias Answer = Result<[SocketAddress], ResolveError>

    /// The loop on which the resolver is used and answers.
    public let loop: EventLoop
    private let settings: Settings
    private var servers: NameServers

    /// Reads the files of `settings`, blocking.
    /// - Throws: if no memory is left. Missing or malformed files are not errors.
    public init(on loop: EventLoop, settings: Settings = Settings()) throws(SystemError) {
        self.loop = loop
        self.settings = settings
        servers = try NameServers(loop, settings)
    }

    /// Reads the files again, blocking, for look-ups that begin from now on. On the loop's thread.
    /// - Throws: if no memory is left; then nothing changes.
    public func readFilesAgain() throws(SystemError) { servers = try NameServers(loop, settings) }

    /// Looks up `host`, a name or an IP address without brackets. On the loop's thread.
    ///
    /// `completion` is called once, on the loop, never inside this call, with at least one address, each with `port`;
    /// IP addresses and `localhost` (RFC 6761 §6.3) at the end of the current iteration. After `cancel` it is not
    /// called.
    @discardableResult
    public func resolve(
        _ host: String, port: UInt16, family: Family = .any, completion: @escaping (Answer) -> Void
    ) -> NameLookup {
        let lookup = NameLookup(servers, port, family, completion)
        if let answer = Self.answerWithoutAsking(host, port, family) {
            lookup.answerLater(answer)
        } else {
            lookup.start(host, timeout: settings.timeout)
        }
        return lookup
    }

    private static func answerWithoutAsking(_ host: String, _ port: UInt16, _ family: Family) -> Answer? {
        guard !host.isEmpty, host.utf8.count <= 254, !host.utf8.contains(0) else { return .failure(.badName) }
        var found: [SocketAddress]
        if let literal = SocketAddress(literal: host, port: port) {
            found = [literal]
        } else {
            let name = host.lowercased()
            guard name == "localhost" || name.hasSuffix(".localhost") else { return nil }
            found = [.ipv4(.loopback, port: port), .ipv6(.loopback, port: port)]
        }
        found.removeAll { !family.includes($0) }
        return found.isEmpty ? .failure(.notFound) : .success(found)
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
    var each: ArraySlice<Resolver.Family> {
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

/// The evdns base. Look-ups in flight keep it: evdns must not lose it before their callbacks have come.
@safe final class NameServers {
    /// Seconds that the addresses of one family wait for those of the other. Some name servers never answer questions
    /// for IPv6 addresses (RFC 4074 §4.1), and evdns would wait 3 s for each of them.
    private static let longestSkew = "0.3"

    let base: OpaquePointer
    let loop: EventLoop

    init(_ loop: EventLoop, _ settings: Resolver.Settings) throws(SystemError) {
        // A waiting name server does not keep the loop's base busy.
        guard let base = unsafe evdns_base_new(loop.base, EVDNS_BASE_DISABLE_WHEN_INACTIVE) else {
            throw SystemError(.eventBase, code: ENOMEM)
        }
        unsafe self.base = base
        self.loop = loop
        _ = unsafe evdns_base_load_hosts(base, settings.hosts)
        // Before the file, which may say otherwise.
        _ = unsafe evdns_base_set_option(base, "getaddrinfo-allow-skew:", Self.longestSkew)
        // Not DNS_OPTION_HOSTSFILE, which would read /etc/hosts whatever the settings say.
        let options = DNS_OPTION_SEARCH | DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC
        _ = unsafe evdns_base_resolv_conf_parse(base, options, settings.resolvConf)
        if unsafe evdns_base_count_nameservers(base) == 0 {
            _ = unsafe evdns_base_nameserver_ip_add(base, "127.0.0.1")
        }
    }

    deinit { unsafe evdns_base_free(base, 0) }
}
