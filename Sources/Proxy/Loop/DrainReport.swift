/// How the requests and tunnels ended that were in progress when the proxy began to drain.
package struct DrainReport: Sendable, Equatable {
    /// Requests and tunnels that ended without being aborted.
    package var ended = 0
    /// Requests aborted at the end.
    package var cutRequests = 0
    /// Tunnels aborted at the end.
    package var cutTunnels = 0

    mutating func add(_ other: DrainReport) {
        ended += other.ended
        cutRequests += other.cutRequests
        cutTunnels += other.cutTunnels
    }
}
