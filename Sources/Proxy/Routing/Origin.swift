import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// An origin as all loops share it: its settings, and the fetches from it that are in flight.
final class Origin: Sendable {
    let settings: UpstreamSettings
    let fetches: OperationQueueManager<FetchKey>
    /// Servers of which the operator was told that they fail, and since when (nanoseconds of the loops' clock). Each
    /// loop finds that for itself; the first one tells it, and the first one to get an answer again.
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

    /// - Returns: whether that is news.
    func notesFailing(_ server: UpstreamServer, _ address: SocketAddress? = nil, at now: Int64) -> Bool {
        let place = Failing(server: server, address: address)
        return failingSince.withLock { failing in
            guard failing[place] == nil, failing.count < Self.mostTold else { return false }
            failing[place] = now
            return true
        }
    }

    /// The first loop that gets an answer tells it, though others may still leave the server alone: `/status` has
    /// those.
    /// - Returns: for how long it failed, in nanoseconds; `nil`: it is known to be back.
    func notesBack(_ server: UpstreamServer, _ address: SocketAddress? = nil, at now: Int64) -> Int64? {
        let place = Failing(server: server, address: address)
        return failingSince.withLock { failing in failing.removeValue(forKey: place).map { max(0, now - $0) } }
    }

    /// Addresses come and go: some may never be back.
    private static let mostTold = 10_000

    // Fetches in flight go on for those who wait, but nobody joins them any more.

    /// Closes the fetches whose response is there, and is of a group that was invalidated since it was asked for.
    func closeFetches(outdatedBy groups: GroupInvalidations, of authority: String) {
        for case let fetch as FetchOperation in fetches.operations {
            guard let fetched = fetch.value, fetched.response.groups != nil, fetched.leader.authority == authority
            else { continue }
            if groups.haveInvalidated(fetched.response, of: authority) { fetch.close() }
        }
    }

    /// Closes the fetches for keys that `isMeant` accepts. Looks at all that is in flight.
    func closeFetches(where isMeant: (CacheKey) -> Bool) { close(fetches.operations, where: isMeant) }

    /// Closes the fetches for this key. Looks at them alone: unsafe requests ask for it, on a worker's loop.
    func closeFetches(of key: CacheKey) { close(fetches.operations(inGroup: key.group)) { $0 == key } }

    private func close(_ operations: [AnyOperation], where isMeant: (CacheKey) -> Bool) {
        for case let fetch as FetchOperation in operations
        where isMeant(fetch.key.primary) || fetch.value.map({ isMeant($0.key) }) ?? false {
            fetch.close()
        }
    }
}

extension CacheKey {
    /// What all fetches for it have in common.
    fileprivate var group: Int { Int(truncatingIfNeeded: hash) }
}
