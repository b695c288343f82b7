public import Bytes
public import HTTPSemantics
import Libevent
public import Telemetry

/// How an exchange with an origin failed: where, why, and what may be done about it.
public struct UpstreamError: Error, Sendable, CustomStringConvertible {
    /// Where in the exchange, and in which way.
    public let failure: UpstreamFailure
    /// Why, where more is known.
    public let reason: Reason?
    /// For people: what the system or the parser said, and of which address. Goes to the log, not to clients.
    public let detail: String
    /// The connection was closed before a byte of a response, so nobody has seen one. Whether the request may be sent
    /// once more is decided by who asks.
    let closedBeforeResponse: Bool
    /// The response broke the rules of its framing, so that what came of it before may be wrong too.
    public let isMalformed: Bool
    /// The address that was tried last, as text; empty when none was.
    public internal(set) var server = ByteSlice.empty
    /// From when the origin was asked to the failure, in nanoseconds; set by whoever asked.
    public var duration: UInt64?

    public init(
        _ failure: UpstreamFailure, _ reason: Reason? = nil, detail: String = "", closedBeforeResponse: Bool = false,
        isMalformed: Bool = false
    ) {
        self.failure = failure
        self.reason = reason
        self.detail = detail
        self.closedBeforeResponse = closedBeforeResponse
        self.isMalformed = isMalformed
    }

    /// What the system says, and what it means at a Unix socket.
    init(cannotConnectTo address: SocketAddress, _ error: SystemError) {
        // Which call failed is what the failure is called after.
        var detail = "\(address): \(error.message)"
        if error.isForbidden, case .unix = address {
            detail +=
                "; this program runs as \(ownUser()), which needs write permission on the socket, and search permission on the folders above it"
        }
        self.init(.connect, Reason(error), detail: detail)
    }

    public var description: String { detail.isEmpty ? "\(failure.name)" : "\(failure.name): \(detail)" }

    /// The rule of its syntax that a malformed response breaks.
    public var brokenRule: MessageSyntaxError.Reason? { if case .syntax(let rule) = reason { rule } else { nil } }

    /// The word for it in `detail`: which rule a malformed response breaks, or where the exchange failed.
    public var word: StaticString { reason?.name ?? failure.name }

    /// What a client is told when nothing better can be served (RFC 9110 §15.6): what RFC 9209 recommends for
    /// `proxyError`.
    public var status: Status { proxyError.recommendedStatus }

    /// The failure in the words of `Proxy-Status` (RFC 9209 §2.3).
    public var proxyError: ProxyError {
        switch failure {
        case .unavailable: .connectionLimitReached
        case .resolve: .dnsError
        case .connect: reason == .unreachable ? .destinationIPUnroutable : .connectionRefused
        case .connectTimeout: .connectionTimeout
        case .send, .closed: .connectionTerminated
        case .sendTimeout: .connectionWriteTimeout
        case .headTimeout, .bodyTimeout: .httpResponseTimeout
        case .head: .httpProtocolError
        case .headTooLarge: .httpResponseHeaderSectionSize
        case .body:
            switch reason {
            case .syntax(.trailersTooLarge), .syntax(.tooManyFields): .httpResponseTrailerSectionSize
            case .syntax: .httpResponseTransferCoding
            default: .httpResponseIncomplete
            }
        }
    }
}
