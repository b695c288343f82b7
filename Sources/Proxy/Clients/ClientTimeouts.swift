import Bytes
import HTTPSemantics
import Libevent

/// How long clients may take, converted once: durations in nanoseconds.
struct ClientTimeouts: Sendable {
    let head: Int64
    let idle: Int64
    /// For the next byte of a request's content, at most.
    let content: Int64
    /// How much of that a byte brings; `nil`: all of it.
    private let perContentByte: Int64?
    let send: Int64
    /// How long one may keep others waiting who read the same response; `nil`: as long as `send` lets it.
    let holdUp: HoldUpBound?
    let tunnel: Int64
    /// How long a closed connection waits for the peer to read the last response: a few round trips.
    let linger: Int64 = 2_000_000_000
    /// How long a client that has shut its sending side is taken to be there while nothing goes out to it. Nearly all such
    /// clients have closed for good, and until something is written nothing tells them from those that only send no
    /// more. It is longer than most pages take that are not stored, and no origin works for nobody much longer.
    let halfClosed: Int64 = 5_000_000_000
    /// How long the end of the program waits for the first request on a connection: what was sent to it before the
    /// client could know is on its way. With the wheel's tick half a second at most.
    let firstRequest: Int64 = 400_000_000

    init(_ settings: ClientSettings, _ coalescing: CoalescingSettings) {
        head = settings.headTimeout.nanoseconds
        idle = settings.idleTimeout.nanoseconds
        content = settings.bodyTimeout.nanoseconds
        perContentByte = settings.minBodyRate.map { 1_000_000_000 / Int64($0) }
        send = settings.sendTimeout.nanoseconds
        holdUp = coalescing.minSharedRate.map { HoldUpBound(bytesPerSecond: $0) }
        tunnel = settings.tunnelTimeout.nanoseconds
    }

    /// The time that a client has for the next byte of its content, in nanoseconds.
    /// - Parameters:
    ///   - left: what it had left as the last ones came; less than nothing where they were in time, and this process was
    ///     stopped.
    ///   - count: how many these were; one read has at most `ReadContexts.contentBufferSize`.
    func forContent(left: Int64, after count: Int) -> Int64 {
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
