public import Coalescing
public import HTTPSemantics
package import Upstream

/// An origin, shared by all loops: its settings, and the fetches from it that are in flight.
public final class Origin: Sendable {
    /// The settings of the upstream.
    package let settings: UpstreamSettings
    /// The fetches in flight.
    public let fetches: OperationQueueManager<FetchKey>
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
}

extension CacheKey {
    /// The operation group of all fetches for this key.
    public var group: Int { Int(truncatingIfNeeded: hash) }
}
