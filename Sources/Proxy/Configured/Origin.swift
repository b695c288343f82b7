import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// An origin, shared by all loops: its settings, and the fetches from it that are in flight.
final class Origin: Sendable {
    let settings: UpstreamSettings
    let fetches: OperationQueueManager<FetchKey>
    /// The servers that were reported as failing, with the time since when (nanoseconds of the loops' clock). Each loop
    /// detects failures by itself; the first loop that does reports it, and the first loop that gets a response again
    /// reports that.
    private let failingSince = Guarded<[Failing: Int64]>([:])

    /// A server, or one address of it.
    private struct Failing: Hashable {
        let server: UpstreamServer
        let address: SocketAddress?
    }

    init(_ settings: UpstreamSettings) {
        self.settings = settings
        var limits = OperationQueueManager<FetchKey>.Settings()
        limits.maxConcurrent = settings.maxConcurrentFetches
        limits.maxQueued = settings.maxQueuedFetches
        limits.group = { $0.primary.group }
        fetches = OperationQueueManager(settings: limits)
    }

    /// - Returns: whether this loop is the first to notice, so that it reports the failure.
    func notesFailing(_ server: UpstreamServer, _ address: SocketAddress? = nil, at now: Int64) -> Bool {
        let place = Failing(server: server, address: address)
        return failingSince.withLock { failing in
            guard failing[place] == nil, failing.count < Self.mostTold else { return false }
            failing[place] = now
            return true
        }
    }

    /// The first loop that gets a response reports it, although other loops may still avoid the server, as `/status`
    /// shows.
    /// - Returns: how long the server failed, in nanoseconds; `nil` if it is not recorded as failing.
    func notesBack(_ server: UpstreamServer, _ address: SocketAddress? = nil, at now: Int64) -> Int64? {
        let place = Failing(server: server, address: address)
        return failingSince.withLock { failing in failing.removeValue(forKey: place).map { max(0, now - $0) } }
    }

    /// Bounds `failingSince`: addresses of a server change, and some may never respond again.
    private static let mostTold = 10_000
}

extension CacheKey {
    /// The operation group of all fetches for this key.
    var group: Int { Int(truncatingIfNeeded: hash) }
}
