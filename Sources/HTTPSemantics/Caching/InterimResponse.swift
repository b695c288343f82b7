/// What becomes of a 1xx response on its way to one client (RFC 9110 §15.2).
public enum InterimResponse: Sendable, Equatable {
    /// Sent on, in the order in which they came; to every client that waits on the fetch.
    case forward
    /// Kept back: it answers something this client did not ask, or that it would not understand.
    case drop
    /// 101: this exchange becomes a tunnel, for the one client that asked for it.
    case upgrade

    /// - Parameters:
    ///   - version: of the client's request.
    ///   - expectsContinue: whether this client sent `Expect: 100-continue`.
    ///   - ledUpgrade: whether this client's request, with `Upgrade`, is the one that was forwarded.
    public init(_ status: Status, version: HTTPVersion, expectsContinue: Bool, ledUpgrade: Bool) {
        // §15.2: never to HTTP/1.0.
        guard status.isInformational, version != .http10 else { self = .drop; return }
        self = switch status {
        // Ours upstream may have asked for it; only who asked gets it (§10.1.1).
        case .continue: expectsContinue ? .forward : .drop
        case .switchingProtocols: ledUpgrade ? .upgrade : .drop
        // 102, 103 (RFC 8297) and those nobody knows yet.
        default: .forward
        }
    }
}
