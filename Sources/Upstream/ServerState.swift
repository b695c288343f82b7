public import Libevent

/// A server of an origin at one moment, as one loop sees it or several do.
///
/// Each loop learns from its own requests, and shares nothing of it: who wants to know asks each loop through its
/// mailbox (`UpstreamPool.serverStates`) and merges the answers. The loop that was last to change its mind is right,
/// since one that has had no request since does not know that a server is back. For the same reason a loop that left
/// one alone has nothing to say once the cool-down is over and others had answers meanwhile.
public struct ServerState: Sendable, Equatable {
    /// Fewer than `maxFailures` in a row of late. A server that is not up is left alone, if there is another.
    public var isUp: Bool
    /// When that changed, in nanoseconds of the monotonic clock; `nil`: never.
    public var changedAt: Int64?
    /// Loops for which it is not up.
    public var failingLoops: Int
    /// When the first of those tries it again, on the same clock.
    public var nextTry: Int64?
    /// When its latest response came, on the same clock; `nil`: none has.
    var answeredAt: Int64?
    /// Of a loop for which it is not up and that has not found it failing for a whole cool-down: when it did. A later
    /// response elsewhere tells more.
    var outdatedBy: Int64?
    /// Connections that carry a request, or a tunnel, or are one client connection's own.
    public var inUse: Int
    /// Connections kept for the next request.
    public var idle: Int
    /// What its name resolved to; empty where it has no name, or nobody has asked for it yet.
    public var addresses: [AddressState]

    /// By default as a loop sees it that knows nothing of it.
    public init(
        isUp: Bool = true, changedAt: Int64? = nil, failingLoops: Int = 0, nextTry: Int64? = nil,
        answeredAt: Int64? = nil, outdatedBy: Int64? = nil, inUse: Int = 0, idle: Int = 0,
        addresses: [AddressState] = []
    ) {
        self.isUp = isUp
        self.changedAt = changedAt
        self.failingLoops = failingLoops
        self.nextTry = nextTry
        self.answeredAt = answeredAt
        self.outdatedBy = outdatedBy
        self.inUse = inUse
        self.idle = idle
        self.addresses = addresses
    }

    /// What several loops see of the same server, together.
    public init(merging states: [ServerState]) {
        let answered = states.compactMap(\.answeredAt).max()
        let believed = states.filter { state in
            guard let failed = state.outdatedBy, let answered else { return true }
            return answered <= failed
        }
        let latest = believed.max { ($0.changedAt ?? .min) < ($1.changedAt ?? .min) }
        self.init(
            isUp: latest?.isUp ?? true, changedAt: latest?.changedAt,
            failingLoops: states.reduce(0) { $0 + $1.failingLoops }, nextTry: states.compactMap(\.nextTry).min(),
            answeredAt: answered, inUse: states.reduce(0) { $0 + $1.inUse }, idle: states.reduce(0) { $0 + $1.idle },
            addresses: Self.merged(states.map(\.addresses)))
    }

    /// Each address once, in the order in which they are first seen.
    private static func merged(_ lists: [[AddressState]]) -> [AddressState] {
        var places: [SocketAddress: Int] = [:]
        var seen: [(address: SocketAddress, states: [ServerState])] = []
        for one in lists.joined() {
            if let place = places[one.address] {
                seen[place].states.append(one.state)
            } else {
                places[one.address] = seen.count
                seen.append((one.address, [one.state]))
            }
        }
        return seen.map { AddressState(address: $0.address, state: ServerState(merging: $0.states)) }
    }
}

/// One address of a server at one moment, as one loop sees it or several do.
public struct AddressState: Sendable, Equatable {
    /// With its port.
    public let address: SocketAddress
    /// As of a server; without addresses of its own.
    public var state: ServerState

    public init(address: SocketAddress, state: ServerState) {
        self.address = address
        self.state = state
    }
}
