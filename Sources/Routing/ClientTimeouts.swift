public import Bytes
import HTTPSemantics
import Libevent

/// The timeouts of clients in nanoseconds, converted from the settings once.
public struct ClientTimeouts: Sendable {
    /// For the rest of a request head.
    public let head: Int64
    /// Between two requests.
    public let idle: Int64
    /// The most time for the next byte of a request's content.
    public let content: Int64
    /// How much time a byte of content adds; `nil`: it resets the time to `content`.
    private let perContentByte: Int64?
    /// The most time for the client to take a byte.
    public let send: Int64
    /// The bound on how long a slow client may hold up the other readers of the same response; `nil`: only `send`
    /// bounds it.
    public let holdUp: HoldUpBound?
    /// The most silence in a tunnel.
    public let tunnel: Int64
    /// Silence on a connection of HTTP/2 with streams, before a PING is sent.
    public let ping: Int64
    /// For the answer to that PING.
    public let pingAnswer: Int64
    /// How long a closed connection waits for the peer to read the last response: a few round trips.
    public let linger: Int64 = 2_000_000_000
    /// How long a connection with a shut sending side is kept while no bytes are sent to it. Nearly all such clients
    /// have closed, and only a write tells a closed connection from a half-closed one. The time is longer than most
    /// pages take that are not stored, and short enough that no origin works much longer for a client that is gone. TCP
    /// keep-alive probes do not tell: the kernel of a client that closed less than a minute ago answers them. (nginx
    /// takes such a client for gone at once; HAProxy and Varnish wait as long as the origin takes.)
    public let halfClosed: Int64 = 5_000_000_000
    /// How long the end of the program waits for the first request on a connection: a request sent before the client
    /// could notice the end is still on its way. With the tick of the deadline wheel, half a second at most.
    public let firstRequest: Int64 = 400_000_000

    init(_ settings: ClientSettings, _ coalescing: CoalescingSettings) {
        head = settings.headTimeout.nanoseconds
        idle = settings.idleTimeout.nanoseconds
        content = settings.bodyTimeout.nanoseconds
        perContentByte = settings.minBodyRate.map { 1_000_000_000 / Int64($0) }
        send = settings.sendTimeout.nanoseconds
        holdUp = coalescing.minSharedRate.map { HoldUpBound(bytesPerSecond: $0) }
        tunnel = settings.tunnelTimeout.nanoseconds
        ping = settings.pingInterval.nanoseconds
        pingAnswer = settings.pingTimeout.nanoseconds
    }

    /// The time that a client has for the next byte of its request content, in nanoseconds.
    /// - Parameters:
    ///   - left: the time left when the last bytes arrived; negative if they were in time and this process was stopped.
    ///   - count: the number of those bytes, which came in one read.
    public func forContent(left: Int64, after count: Int) -> Int64 {
        guard let perContentByte else { return content }
        return min(content, max(0, left) + Int64(count) * perContentByte)
    }
}

extension HeadLimits {
    init(_ settings: ClientSettings) {
        self.init(
            maxHeadBytes: settings.maxHeadSize, maxFieldLines: settings.maxFieldLines,
            maxTargetLength: settings.maxTargetLength)
    }
}
