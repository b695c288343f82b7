/// The times and bounds of the connection to an engine. Times are in nanoseconds.
package struct RedisSettings: Sendable {
    /// The time in which a command is answered; afterwards its reply is late, and dropped when it comes.
    package var timeout: Int64 = 20_000_000
    /// The time for connecting and for the commands that prepare a connection.
    package var setUpLimit: Int64 = 1_000_000_000
    /// A connection on which the oldest command waits this long is closed, and another one made: a failover may have
    /// left it without an engine at its other end, which the kernel would find out after many minutes.
    package var stall: Int64 = 2_000_000_000
    /// The pauses before connecting again: the first, and the longest. Each is twice the one before.
    package var (shortestPause, longestPause): (Int64, Int64) = (50_000_000, 1_000_000_000)
    /// After this many failures in a row the breaker opens.
    package var breakerFailures = 5
    /// The time between two probes while the breaker is open.
    package var probeInterval: Int64 = 1_000_000_000
    /// The most bytes that wait to be sent.
    package var mostUnsent = 16 << 20
    /// The most commands that wait for their replies.
    package var mostAwaited = 1 << 16
    /// The bounds of a reply.
    package var limits = RESPLimits()

    /// The values by default.
    package init() {}
}
