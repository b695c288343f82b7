/// A handshake of TLS with a client that was done, by what was agreed on. A closed list, so that each has a counter of
/// its own.
public enum ClientHandshake: UInt8, CaseIterable, Sendable {
    case tls12, tls12Resumed, tls13, tls13Resumed

    /// - Parameters:
    ///   - isTLS13: whether the version is 1.3; otherwise it is 1.2, the oldest one that is spoken.
    ///   - isResumed: whether an earlier session was resumed.
    public init(isTLS13: Bool, isResumed: Bool) {
        self =
            switch (isTLS13, isResumed) {
            case (false, false): .tls12
            case (false, true): .tls12Resumed
            case (true, false): .tls13
            case (true, true): .tls13Resumed
            }
    }

    /// The index in `allCases`.
    @inlinable var position: Int { Int(rawValue) }

    /// The labels of its sample.
    var labels: [(name: String, value: String)] {
        let (isTLS13, isResumed) = (
            self == .tls13 || self == .tls13Resumed, self == .tls12Resumed || self == .tls13Resumed
        )
        return [("version", isTLS13 ? "1.3" : "1.2"), ("resumed", isResumed ? "true" : "false")]
    }
}

/// Why a client of a listener with TLS was not served: the kinds of failure that `TLS` knows, by the same names, and one
/// more.
public enum HandshakeFailure: UInt8, PublicName {
    /// The client's bytes are no TLS, or break its rules, or have nothing in common with what is allowed here.
    case protocolError
    /// The client's certificate is refused, or missing.
    case certificate
    /// The client has refused with an alert, such as one that does not know the certificate's issuer.
    case alert
    /// The client, or the network, ended the connection; or the handshake took too long; or the program ended.
    case cut
    /// Memory or descriptors are short here.
    case shortage
    /// The client sent a request in the clear.
    case plain

    public var name: StaticString {
        switch self {
        case .protocolError: "protocol"
        case .certificate: "certificate"
        case .alert: "alert"
        case .cut: "cut"
        case .shortage: "shortage"
        case .plain: "plain"
        }
    }
}
