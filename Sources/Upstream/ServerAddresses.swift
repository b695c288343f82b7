import Libevent

/// The addresses of one server's name, as one loop sees them. Connections use them in turn, and addresses that failed
/// lately are passed over. Pure: time is an argument.
///
/// An address that takes no connection is left alone at once, for a cool-down, since there are others. An address whose
/// exchanges fail is left alone after `maxFailures` in a row, like a server.
struct ServerAddresses: Sendable {
    /// The address whose turn it is.
    struct Turn: Equatable {
        let address: SocketAddress
        /// When the request was chosen to try an address that had been left alone; `nil` if it was not chosen, or after
        /// a verdict.
        var tryBegan: Int64?
    }

    /// In the order of their turns, IPv4 and IPv6 alternating; empty before the first look-up.
    private(set) var all: [SocketAddress] = []
    /// Whether there is a choice. The two loopback addresses, which a machine has for itself, are two ways to one
    /// server: the first that works is used.
    private(set) var areSeveral = false
    /// The addresses in the last answer.
    private var found: [SocketAddress] = []
    private var balance: ServerBalance
    private let make: @Sendable (_ count: Int) -> ServerBalance

    /// - Parameters: as of `ServerBalance.init`.
    init(startingAt first: Int, maxFailures: Int, cooldown: Int64) {
        make = { ServerBalance(servers: $0, startingAt: first, maxFailures: maxFailures, cooldown: cooldown) }
        balance = make(0)
    }

    /// Replaces the addresses. Addresses that stay keep their health and their turns.
    mutating func change(to found: [SocketAddress]) {
        guard found != self.found else { return }
        self.found = found
        let (before, now) = (Set(all), Set(found))
        let old = all
        all = SocketAddress.familiesInTurn(old.filter(now.contains) + found.filter { !before.contains($0) })
        areSeveral = all.count > 1 && !(all.count == 2 && all.allSatisfy(\.isOwnLoopback))
        if old.isEmpty {
            balance = make(all.count)
        } else {
            balance.change(to: all.map { old.firstIndex(of: $0) })
        }
    }

    /// The address whose turn it is; `nil` if there is no choice.
    mutating func next(at now: Int64) -> Turn? {
        guard areSeveral else { return nil }
        let pick = balance.pick(at: now)
        return Turn(address: all[pick.server], tryBegan: pick.tryBegan)
    }

    /// All addresses, starting at `turn`, with addresses that are left alone last: the order in which a request tries
    /// to connect.
    func order(from turn: SocketAddress, at now: Int64) -> [SocketAddress] {
        let first = all.firstIndex(of: turn) ?? 0
        let others = (1..<max(1, all.count)).map { (first + $0) % all.count }
        let (usable, left) = (
            others.filter { !balance.isLeftAlone($0, at: now) }, others.filter { balance.isLeftAlone($0, at: now) }
        )
        return ([first] + usable + left).map { all[$0] }
    }

    /// - Parameter isCertain: whether the address takes no connections; otherwise it counts as one failure in a row.
    /// - Returns: whether the address is now left alone, and was not before.
    mutating func failed(_ address: SocketAddress, isCertain: Bool, at now: Int64) -> Bool {
        guard areSeveral, let index = all.firstIndex(of: address) else { return false }
        return balance.failed(index, isCertain: isCertain, at: now)
    }

    /// Notes that a response came from `address`.
    /// - Returns: whether the address had been left alone.
    mutating func succeeded(_ address: SocketAddress, at now: Int64) -> Bool {
        guard areSeveral, let index = all.firstIndex(of: address) else { return false }
        return balance.succeeded(index, at: now)
    }

    /// Notes that a try of the address ended with neither a response nor a failure.
    mutating func undecided(_ address: SocketAddress, tryBegan began: Int64, at now: Int64) {
        guard let index = all.firstIndex(of: address) else { return }
        balance.undecided(index, tryBegan: began, at: now)
    }

    /// The state of each address, without its connections.
    func states(at now: Int64) -> [AddressState] {
        all.indices.map { AddressState(address: all[$0], state: balance.state(of: $0, at: now)) }
    }
}

extension SocketAddress {
    /// 127.0.0.1 or ::1.
    fileprivate var isOwnLoopback: Bool {
        switch self {
        case .ipv4(let address, _): address == .loopback
        case .ipv6(let address, _, _): address == .loopback
        case .unix: false
        }
    }
}
