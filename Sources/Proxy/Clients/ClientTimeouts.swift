import HTTPSemantics
import Libevent

/// `ClientSettings`' durations in nanoseconds, converted once.
struct ClientTimeouts: Sendable {
    let head: Int64
    let idle: Int64
    let content: Int64
    let send: Int64
    let tunnel: Int64
    /// How long a closed connection waits for the peer to read the last response: a few round trips.
    let linger: Int64 = 2_000_000_000

    init(_ settings: ClientSettings) {
        head = settings.headTimeout.nanoseconds
        idle = settings.idleTimeout.nanoseconds
        content = settings.bodyTimeout.nanoseconds
        send = settings.sendTimeout.nanoseconds
        tunnel = settings.tunnelTimeout.nanoseconds
    }
}

extension HeadLimits {
    init(_ settings: ClientSettings) {
        self.init(
            maxHeadBytes: settings.maxHeadSize, maxFieldLines: settings.maxFieldLines,
            maxTargetLength: settings.maxTargetLength)
    }
}
