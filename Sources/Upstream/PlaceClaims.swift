import Bytes
import Libevent

/// What one exchange holds at an origin with several places, and has to give back: the probe of a place, and its share
/// of the place's requests in flight. And what it knows for the choice of its place.
///
/// Owned by its exchange, confined to its loop. An exchange with an origin of one place has none: nothing is chosen or
/// counted there.
final class PlaceClaims {
    private let pool: UpstreamPool
    /// Whether the request is no client's, but a `Probe`'s: it is sent once, on a new connection, to one place.
    let isProbe: Bool
    /// The hash of the request's key, under `Balance.hash`.
    var key: UInt64 = 0
    /// The place to ask first; `nil` once one was chosen.
    var preferred: Place?
    /// The last failure to connect, for the log.
    var lastFailure: String?
    /// The place whose probe the exchange is.
    private var probed: PlaceConnections?
    /// When the exchange was chosen as that probe.
    private var probe: Int64 = 0
    /// The place that counts the exchange among its requests in flight, if it counts them.
    private var counted: Place?

    /// - Parameter isProbe: otherwise the request counts for the budget of retries.
    init(on pool: UpstreamPool, isProbe: Bool = false) {
        self.pool = pool
        self.isProbe = isProbe
        if !isProbe { pool.countRequest() }
    }

    /// The place is asked.
    /// - Parameter probe: when the exchange was chosen as the place's probe; `nil`: it was not.
    func enter(_ place: PlaceConnections, probe: Int64? = nil) {
        if let probe { (probed, self.probe) = (place, probe) }
        guard pool.countsRequests else { return }
        place.place.begin()
        counted = place.place
    }

    /// The exchange leaves the place: it is no request in flight there any more, and a probe without a verdict ends.
    func leavePlace() {
        if let place = probed.take() { pool.undecided(place, probe: probe) }
        if let place = counted.take() { place.end() }
    }

    /// When the exchange was chosen as the probe of `place`, which gets its verdict now; `nil`: it is not the probe.
    func takeProbe(of place: PlaceConnections) -> Int64? {
        guard probed === place else { return nil }
        probed = nil
        return probe
    }

    /// The place has sent a response that is no failure.
    /// - Parameter began: when the request was given to its connection.
    func answered(_ place: PlaceConnections, since began: Int64) {
        pool.answered(place, probe: takeProbe(of: place))
        let now = pool.loop.now
        counted?.noteLatency(now - began, at: now)
    }
}
