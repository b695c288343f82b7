/// An event that costs this side more than it costs the peer, or makes it do work whose result nobody waits for (RFC 9113
/// §10.5).
public enum PeerEvent: Int, Sendable, CaseIterable {
    /// The peer resets a stream (RST_STREAM), of which the work has begun: rapid reset, CVE-2023-44487.
    case resetByPeer
    /// This side resets a stream since the peer broke a rule: made-to-reset, CVE-2025-8671.
    case resetByUs
    /// This side refuses a stream: the peer has too many.
    case refused
    /// A field section beyond the limits (the indexed-field bomb is one).
    case fields
    /// A PING or SETTINGS, which must be answered.
    case acknowledged
    /// A PRIORITY, PRIORITY_UPDATE, or a frame of unknown type.
    case priority
    /// A DATA frame without content that does not end its stream, or a WINDOW_UPDATE that no content has preceded.
    case empty

    /// - Parameter code: of an RST_STREAM of this side (RFC 9113 §7). Codes for a failure of this side, or of an origin, are
    ///   no event of the peer.
    init?(ofResetWith code: UInt32) {
        switch code {
        case 1, 3, 5, 6: self = .resetByUs
        case 7: self = .refused
        default: return nil
        }
    }

    /// The frames, in words for the log.
    public var text: StaticString {
        switch self {
        case .resetByPeer: "RST_STREAM frames"
        case .resetByUs: "requests with errors"
        case .refused: "streams"
        case .fields: "fields"
        case .acknowledged: "PING or SETTINGS frames"
        case .priority: "frames of priority or unknown type"
        case .empty: "empty DATA or WINDOW_UPDATE frames"
        }
    }
}

/// Bounds the events of one connection. With one too many the connection ends, with ENHANCE_YOUR_CALM (RFC 9113 §7). A
/// pure value: time is an argument.
package struct PeerConduct: Sendable {
    private var bounds: [7 of RateBound]

    /// - Parameter now: nanoseconds of a clock that never goes back.
    package init(at now: Int64) {
        // In the order of the events.
        bounds = [
            RateBound(burst: 100, perSecond: 20, at: now), RateBound(burst: 50, perSecond: 10, at: now),
            RateBound(burst: 1000, perSecond: 100, at: now), RateBound(burst: 20, perSecond: 2, at: now),
            RateBound(burst: 100, perSecond: 10, at: now), RateBound(burst: 500, perSecond: 100, at: now),
            RateBound(burst: 1000, perSecond: 1000, at: now),
        ]
    }

    /// - Returns: false if the connection is to end.
    package mutating func admit(_ event: PeerEvent, at now: Int64) -> Bool { bounds[event.rawValue].admit(at: now) }
}
