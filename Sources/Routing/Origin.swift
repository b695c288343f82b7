import Bytes
public import Coalescing
public import HTTPSemantics
package import Libevent
package import Upstream

/// An origin, shared by all loops: its settings, and the fetches from it that are in flight.
public final class Origin: Sendable {
    /// The settings of the upstream.
    package let settings: UpstreamSettings
    /// The fetches in flight.
    public let fetches: OperationQueueManager<FetchKey>
    /// The servers that were reported as failing, with the time since when (nanoseconds of the loops' clock). Each loop
    /// detects failures by itself; the first loop that does reports it, and the first loop that gets a response again
    /// reports that.
    private let failingSince = Guarded<[Failing: Int64]>([:])

    /// A server, or one address of it.
    private struct Failing: Hashable {
        let server: UpstreamServer
        let address: SocketAddress?
    }

    /// Its servers, as all loops see them.
    package let group: ServerGroup

    /// An origin without fetches.
    /// - Parameter former: the origin of the same name under former settings: places that are in both keep their
    ///   health.
    package init(_ settings: UpstreamSettings, after former: Origin? = nil) {
        self.settings = settings
        group = ServerGroup(settings, after: former?.group)
        fetches = OperationQueueManager(
            maxConcurrent: settings.maxConcurrentFetches, maxQueued: settings.maxQueuedFetches,
            group: { $0.primary.group })
    }

    /// Notes that a server, or one address of it, fails.
    /// - Returns: whether this loop is the first to notice, so that it reports the failure.
    package func notesFailing(_ server: UpstreamServer, _ address: SocketAddress? = nil, at now: Int64) -> Bool {
        let place = Failing(server: server, address: address)
        return failingSince.withLock { failing in
            guard failing[place] == nil, failing.count < Self.mostFailing else { return false }
            failing[place] = now
            return true
        }
    }

    /// The first loop that gets a response reports it, although other loops may still avoid the server, as `/status`
    /// shows.
    /// - Returns: how long the server failed, in nanoseconds; `nil` if it is not recorded as failing.
    package func notesBack(_ server: UpstreamServer, _ address: SocketAddress? = nil, at now: Int64) -> Int64? {
        let place = Failing(server: server, address: address)
        return failingSince.withLock { failing in failing.removeValue(forKey: place).map { max(0, now - $0) } }
    }

    /// Bounds `failingSince`: addresses of a server change, and some may never respond again.
    private static let mostFailing = 10_000
}

extension CacheKey {
    /// The operation group of all fetches for this key.
    public var group: Int { Int(truncatingIfNeeded: hash) }
}
