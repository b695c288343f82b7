import Bytes
import HTTPSemantics

/// A copy of a client's request that asks a place whose ejection is over whether it is back, while the request itself
/// goes to a place in use: no client waits for a server that may hang. Only the head of the response counts; the
/// exchange notes it, or the failure, as it does for any request that is a probe, and then the copy ends.
///
/// A copy takes no slot of the origin's, and no retry out of the budget. Owned by the loop's connections to the place,
/// confined to the loop. `ServerGroup.claimProbe` sees to it that there is one at a time, over all loops.
///
/// ```
/// new ─start→ asking ─head, failure→ ended
///                └─the pool is retired, the place has left or is drained→ ended (no verdict)
/// ```
final class Probe: ExchangeHandler {
    private let place: PlaceConnections
    /// `nil` once the probe has ended. Until then, exchange and probe hold each other.
    private var exchange: Exchange?

    /// - Parameter request: may be copied (`UpstreamRequest.mayBeCopied`).
    init(of place: PlaceConnections, in pool: UpstreamPool, copying request: borrowing UpstreamRequest) {
        self.place = place
        exchange = Exchange(request.copyForProbe(), pool: pool, handler: self, preferring: nil)
    }

    /// - Parameter time: when the probe was claimed.
    func start(claimedAt time: Int64) { exchange?.probe(place, claimedAt: time) }

    /// Ends the probe. A second call does nothing.
    func stop() {
        exchange?.cancel()
        exchange = nil
        if place.probe === self { place.probe = nil }
    }

    // MARK: ExchangeHandler

    func exchange(_ exchange: Exchange, interim head: borrowing ReceivedHead) {}
    func exchange(_ exchange: Exchange, received head: borrowing ReceivedHead) { stop() }
    func exchange(_ exchange: Exchange, failedWith error: UpstreamError) { stop() }

    // Not called: the exchange is cancelled at the head, and asks for no other protocol.
    func exchange(_ exchange: Exchange, received body: Span<UInt8>) -> BodyIntake { .taken }
    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?) { stop() }
    func exchange(_ exchange: Exchange, upgradedTo connection: UpstreamConnection, head: borrowing ReceivedHead) {
        connection.closeTunnel()
    }
    func exchangeTakesContent(_ exchange: Exchange) {}
}
