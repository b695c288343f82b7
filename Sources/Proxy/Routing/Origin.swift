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

    // MARK: Invalidation

    /// Marks the fetches for this key, and the fetches whose responses belong under it, as invalidated. Examines only
    /// the fetches in the key's group, since it is called for unsafe requests, on a worker's loop.
    /// - Parameter own: the fetch whose response causes the invalidation.
    func invalidateFetches(of key: CacheKey, except own: FetchOperation?) {
        for case let fetch as FetchOperation in fetches.operations(inGroup: key.group) where fetch !== own {
            fetch.invalidate()
        }
    }

    /// Marks the fetches for keys that `isMeant` accepts. Examines all fetches in flight.
    func invalidateFetches(where isMeant: (CacheKey) -> Bool) {
        for case let fetch as FetchOperation in fetches.operations
        where isMeant(fetch.key.primary) || fetch.value.map({ isMeant($0.key) }) ?? false {
            fetch.invalidate()
        }
    }

    /// Closes the fetches that have a response in a cache group that was invalidated since the response was requested.
    /// Such a response may be stored: the store's look-ups ask `GroupInvalidations`.
    func closeFetches(outdatedBy groups: GroupInvalidations, of authority: String) {
        for case let fetch as FetchOperation in fetches.operations {
            guard let fetched = fetch.value, fetched.response.groups != nil, fetched.leader.authority == authority
            else { continue }
            if groups.haveInvalidated(fetched.response, of: authority) { fetch.close() }
        }
    }
}

extension FetchPlan {
    /// The group by which invalidations find a fetch for `request` alone; `nil` if its response is never stored.
    /// Fetches for several requests have their group from their key.
    func group(ofFetchFor request: ClientRequest) -> Int? {
        guard request.route.isCached else { return nil }
        switch request.method {
        case .get: return key.primary.group
        case .post: return request.route.policy.storesPostAnswers ? key.primary.group : nil
        case .head, .put, .delete, .connect, .options, .trace, .patch, .otherSafe, .otherIdempotent, .other: return nil
        }
    }
}

extension CacheKey {
    /// The operation group of all fetches for this key.
    fileprivate var group: Int { Int(truncatingIfNeeded: hash) }
}
