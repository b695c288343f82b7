package import Libevent

/// The state of a server of an origin at one moment, as seen by one loop or by several.
///
/// Each loop learns from its own requests and shares nothing. To get the state, ask each loop through its mailbox
/// (`UpstreamPool.serverStates`) and merge the answers. The loop whose verdict changed last is right, since a loop
/// without requests since then does not know that a server is back. For the same reason, the verdict of a loop that
/// left a server alone does not count once its cool-down is over and other loops had answers meanwhile.
package struct ServerState: Sendable, Equatable {
    /// Whether there were fewer than `maxFailures` in a row lately. A server that is not up is left alone, if there is
    /// another.
    package var isUp: Bool
    /// When `isUp` last changed, in nanoseconds of the monotonic clock; `nil`: never.
    package var changedAt: Int64?
    /// The number of loops for which the server is not up.
    package var failingLoops: Int
    /// When the first such loop tries the server again, on the same clock.
    package var nextTry: Int64?
    /// When the server's latest response came, on the same clock; `nil`: no response came.
    var answeredAt: Int64?
    /// For a loop that sees the server as not up, and saw its last failure at least one cool-down ago: the time of that
    /// failure. A later response on another loop outweighs the verdict.
    var outdatedBy: Int64?
    /// Connections that carry a request or a tunnel, or belong to a client connection.
    package var inUse: Int
    /// Connections kept for the next request.
    package var idle: Int
    /// The addresses to which the server's name resolved; empty if it has no name, or if no request has looked it up
    /// yet.
    package var addresses: [AddressState]

    /// The default arguments are the state for a loop without requests to the server.
    package init(
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

    /// Merges the states that several loops have of the same server.
    package init(merging states: [ServerState]) {
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

    /// Each address once, in the order of first occurrence.
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

/// The state of one address of a server at one moment, as seen by one loop or by several.
package struct AddressState: Sendable, Equatable {
    /// The address with its port.
    package let address: SocketAddress
    /// A state like that of a server, without addresses.
    package var state: ServerState

    package init(address: SocketAddress, state: ServerState) {
        self.address = address
        self.state = state
    }
}
