package import Upstream

/// The servers of one upstream at one moment.
package struct UpstreamServers: Sendable {
    /// The settings of the upstream.
    package let settings: UpstreamSettings
    /// In the order of the configuration.
    package let servers: [ServerReport]
    /// The counts of their events so far.
    package let events: ServerEventCounts

    /// - Parameter connections: as each loop counts them, of all upstreams.
    init(_ group: ServerGroup, _ connections: [UpstreamPool.ConnectionCount], at now: Int64) {
        settings = group.settings
        events = group.events
        let states = Dictionary(grouping: group.states(at: now), by: \.server)
        let connections = Dictionary(grouping: connections) { ObjectIdentifier($0.place) }
        servers = settings.servers.enumerated().map { index, server in
            ServerReport(
                server: server,
                places: (states[index] ?? []).map { state in
                    let connections = connections[ObjectIdentifier(state.place)] ?? []
                    return PlaceReport(
                        state: state, inUse: connections.reduce(0) { $0 + $1.inUse },
                        idle: connections.reduce(0) { $0 + $1.idle })
                })
        }
    }
}

/// A server at one moment.
package struct ServerReport: Sendable {
    /// The server.
    package let server: UpstreamServer
    /// One for each address of its name; one if it has no name.
    package let places: [PlaceReport]

    /// The place whose state is that of the server: a server is as usable as the best of its addresses. If none can be
    /// used, the place that became so last.
    package var leading: PlaceState? {
        places.map(\.state).min { one, other in
            if one.condition != other.condition { return one.condition < other.condition }
            let (since, sinceOther) = (one.changedAt ?? .min, other.changedAt ?? .min)
            return one.condition.isInUse ? since < sinceOther : since > sinceOther
        }
    }

    /// Connections of all loops that carry a request or a tunnel, or belong to a client connection.
    package var inUse: Int { places.reduce(0) { $0 + $1.inUse } }
    /// Connections of all loops that are kept for the next request.
    package var idle: Int { places.reduce(0) { $0 + $1.idle } }
    /// Requests in flight; counted under `least-requests` only.
    package var requestsInFlight: Int { places.reduce(0) { $0 + $1.state.place.requestsInFlight } }
}

/// A place at one moment.
package struct PlaceReport: Sendable {
    /// As all loops see it.
    package let state: PlaceState
    /// As of `ServerReport`.
    package let inUse: Int
    /// As of `ServerReport`.
    package let idle: Int
}
