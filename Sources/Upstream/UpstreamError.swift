public import Telemetry

/// How an exchange with an origin failed: where, why, and what may be done about it.
public struct UpstreamError: Error, Sendable, CustomStringConvertible {
    /// Where in the exchange, and in which way.
    public let failure: UpstreamFailure
    /// For people: the system's or the parser's word. Goes to the log, not to clients.
    public let detail: String
    /// Trying once more cannot make the origin do the work twice: the connection was an old one and closed before a
    /// byte of a response (RFC 9112 §9.3.1). Whether the method allows it is decided by who asks.
    public let closedBeforeResponse: Bool

    public init(_ failure: UpstreamFailure, detail: String = "", closedBeforeResponse: Bool = false) {
        self.failure = failure
        self.detail = detail
        self.closedBeforeResponse = closedBeforeResponse
    }

    public var description: String { detail.isEmpty ? failure.name : "\(failure.name): \(detail)" }

    /// What a client is told when nothing better can be served (RFC 9110 §15.6).
    public var status: UInt16 {
        switch failure {
        case .unavailable: 503
        case .connectTimeout, .headTimeout, .bodyTimeout: 504
        case .resolve, .connect, .send, .closed, .head, .body: 502
        }
    }

    /// The error type of `Proxy-Status` (RFC 9209 §2.3).
    public var proxyStatusType: StaticString {
        switch failure {
        case .unavailable: "destination_unavailable"
        case .resolve: "dns_error"
        case .connect: "connection_refused"
        case .connectTimeout: "connection_timeout"
        case .send, .closed: "connection_terminated"
        case .headTimeout: "http_response_timeout"
        case .head: "http_protocol_error"
        case .body: "http_response_incomplete"
        case .bodyTimeout: "http_response_timeout"
        }
    }
}
