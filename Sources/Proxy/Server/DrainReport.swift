/// What became of what was under way when the proxy began to end.
public struct DrainReport: Sendable, Equatable {
    /// Requests and tunnels that ended by themselves.
    public var ended = 0
    /// Requests cut off at the end.
    public var cutRequests = 0
    /// Tunnels cut off at the end.
    public var cutTunnels = 0

    mutating func add(_ other: DrainReport) {
        ended += other.ended
        cutRequests += other.cutRequests
        cutTunnels += other.cutTunnels
    }
}
