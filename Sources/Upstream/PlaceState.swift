package import Libevent

/// The state of one place at one moment, for operators.
package struct PlaceState: Sendable {
    /// Whether the place gets requests, and why not. The best comes first.
    package enum Condition: String, Sendable, CaseIterable, Comparable {
        /// The place gets its share of the requests.
        case up
        /// Up, with a share of the requests that still grows.
        case slowStart = "slow-start"
        /// One request, or its copy, finds out whether it is back.
        case probing
        /// Left alone because of its answers.
        case ejected
        /// Checks fail.
        case down
        /// The operator lets it have no new request.
        case drained

        /// Whether the place gets requests.
        package var isInUse: Bool { self <= .slowStart }

        /// The best first.
        package static func < (one: Condition, other: Condition) -> Bool {
            let order = allCases
            return order.firstIndex(of: one) ?? 0 < order.firstIndex(of: other) ?? 0
        }
    }

    /// The place, to find its connections on each loop (`UpstreamPool.connections`).
    package let place: Place
    /// The number of the server in the settings.
    package let server: Int
    /// The weight of the server.
    package let weight: Int
    /// Whether the server is asked only while none of the others can be used.
    package let isBackup: Bool
    /// Whether the place gets requests, and why not.
    package let condition: Condition
    /// When the place last became away or was back, in nanoseconds of the monotonic clock; `nil`: never.
    package let changedAt: Int64?
    /// Why it is away, or was the last time.
    package let cause: FailureCause?
    /// When the next probe may begin, on the same clock; `nil` if the place is not ejected.
    package let nextProbe: Int64?
    /// The last active check; `nil`: none was made.
    package let lastCheck: CheckResult?
}

/// An event of a place, for the log. Returned, once, to the loop that brought it about.
package struct PlaceNews: Sendable {
    /// The kind of event.
    package enum Event: Sendable {
        /// `duration`: nanoseconds without requests. `inARow`: the failures in a row; `nil` if that is not why.
        /// `isOnly`: it is the origin's only place, and is asked all the same.
        case isEjected(duration: Int64, FailureCause, inARow: Int?, isOnly: Bool)
        /// Checks fail.
        case isDown(FailureCause)
        /// - Parameter after: nanoseconds.
        case isBack(after: Int64)
    }

    /// The server of the place.
    package let server: UpstreamServer
    /// The address, if the server has others.
    package let address: SocketAddress?
    /// The event.
    package let event: Event
}
