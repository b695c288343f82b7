/// A server of an origin at one moment, as one loop sees it or several do.
///
/// Each loop learns from its own requests, and shares nothing of it: who wants to know asks each loop through its
/// mailbox (`UpstreamPool.serverStates`) and merges the answers. The loop that was last to change its mind is right:
/// one that has had no request since does not know that a server is back.
public struct ServerState: Sendable, Equatable {
    /// Fewer than `maxFailures` in a row of late. A server that is not up is left alone, if there is another.
    public var isUp: Bool
    /// When that changed, in nanoseconds of the monotonic clock; `nil`: never.
    public var changedAt: Int64?
    /// Loops for which it is not up.
    public var failingLoops: Int
    /// When the first of those tries it again, on the same clock.
    public var nextTry: Int64?
    /// Connections that carry a request, or a tunnel.
    public var inUse: Int
    /// Connections kept for the next request.
    public var idle: Int

    /// By default as a loop sees it that knows nothing of it.
    public init(
        isUp: Bool = true, changedAt: Int64? = nil, failingLoops: Int = 0, nextTry: Int64? = nil, inUse: Int = 0,
        idle: Int = 0
    ) {
        self.isUp = isUp
        self.changedAt = changedAt
        self.failingLoops = failingLoops
        self.nextTry = nextTry
        self.inUse = inUse
        self.idle = idle
    }

    /// Adds what another loop sees of the same server.
    public mutating func merge(_ other: ServerState) {
        if let changed = other.changedAt, changedAt.map({ $0 < changed }) ?? true {
            (isUp, changedAt) = (other.isUp, changed)
        }
        failingLoops += other.failingLoops
        nextTry = [nextTry, other.nextTry].compactMap(\.self).min()
        inUse += other.inUse
        idle += other.idle
    }
}
