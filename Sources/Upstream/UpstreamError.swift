package import Bytes
package import HTTPSemantics
import Libevent
import TLS
package import Telemetry

/// How an exchange with an origin failed: in which step, why, and whether the request may be sent again.
package struct UpstreamError: Error, Sendable, CustomStringConvertible {
    /// The step of the exchange that failed, and the kind of failure.
    package let failure: UpstreamFailure
    /// The reason, if more is known.
    package let reason: Reason?
    /// For people: the message of the system or of the parser, and the address. Goes to the log, not to clients.
    package let detail: String
    /// Whether the connection was closed before a byte of a response, so that no client has seen one. The exchange
    /// decides whether the request may be sent once more.
    let closedBeforeResponse: Bool
    /// Whether the response broke a syntax rule or a limit, so that its bytes received before may be wrong too.
    package let isMalformed: Bool
    /// The address that was tried last, as text; empty if none was tried.
    package internal(set) var server = ByteSlice.empty
    /// How many seconds a client should wait before it asks again; `nil`: as after any 503.
    package internal(set) var retryAfter: UInt64?
    /// The time from the request to the failure, in nanoseconds; set by the caller of the exchange.
    package var duration: UInt64?

    package init(
        _ failure: UpstreamFailure, _ reason: Reason? = nil, detail: String = "", closedBeforeResponse: Bool = false,
        isMalformed: Bool = false
    ) {
        self.failure = failure
        self.reason = reason
        self.detail = detail
        self.closedBeforeResponse = closedBeforeResponse
        self.isMalformed = isMalformed
    }

    /// The system's message, with advice if access to a Unix socket is forbidden.
    init(cannotConnectTo address: SocketAddress, _ error: SystemError) {
        // `UpstreamFailure.connect` already names the call that failed.
        var detail = "\(address): \(error.message)"
        if error.isForbidden, case .unix = address {
            detail +=
                "; this program runs as \(ownUser()), which needs write permission on the socket, and search permission on the folders above it"
        }
        self.init(.connect, Reason(error), detail: detail)
    }

    /// OpenSSL's reason, with advice if the server may speak no TLS.
    init(cannotSecure address: SocketAddress, _ error: TLSFailure) {
        let isPlain = error.reason == "wrong version number" || error.reason == "packet length too long"
        let advice = isPlain ? "; the server seems to speak no TLS on this port" : ""
        let detail = "\(address): \(error.reason)\(advice)"
        switch error.kind {
        case .protocolError: self.init(.handshake, .tlsProtocol, detail: detail)
        case .certificate: self.init(.handshake, .tlsCertificate, detail: detail)
        case .alert: self.init(.handshake, .tlsAlert, detail: detail)
        case .cut: self.init(.handshake, .tlsCut, detail: detail)
        case .shortage: self.init(.connect, .shortage, detail: detail)
        }
    }

    package var description: String { detail.isEmpty ? "\(failure.name)" : "\(failure.name): \(detail)" }

    /// The syntax rule that a malformed response breaks.
    package var brokenRule: MessageSyntaxError.Reason? { if case .syntax(let rule) = reason { rule } else { nil } }

    /// Whether no connection could be made, so that the request did not reach a server.
    package var isBeforeRequest: Bool {
        switch failure {
        case .unavailable, .resolve, .connect, .connectTimeout, .handshake: true
        case .send, .sendTimeout, .closed, .headTimeout, .head, .headTooLarge, .body, .bodyTimeout: false
        }
    }

    /// Whether the server took a connection, and its TLS handshake failed or was late.
    var isOfHandshake: Bool { failure == .handshake || reason == .handshakeLate }

    /// The fixed word for the error in the `detail` of `Cache-Status`: the rule that a malformed response breaks, or
    /// the failed step.
    package var word: StaticString { reason?.name ?? failure.name }

    /// The status for the client if no stored response can be served (RFC 9110 §15.6): the one that RFC 9209 recommends
    /// for `proxyError`.
    package var status: Status { proxyError.recommendedStatus }

    /// The failure in the words of `Proxy-Status` (RFC 9209 §2.3).
    package var proxyError: ProxyError {
        switch failure {
        case .unavailable: reason == .noServer ? .destinationUnavailable : .connectionLimitReached
        case .resolve: .dnsError
        case .connect: reason == .unreachable ? .destinationIPUnroutable : .connectionRefused
        case .connectTimeout: .connectionTimeout
        case .handshake:
            switch reason {
            case .tlsCertificate: .tlsCertificateError
            case .tlsAlert: .tlsAlertReceived
            case .tlsCut: .connectionTerminated
            default: .tlsProtocolError
            }
        case .send where reason == .tlsAlert, .closed where reason == .tlsAlert: .tlsAlertReceived
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

extension UpstreamError {
    /// The kind of failure that decides whether a stored response may stand in (RFC 9111 §4.2.4).
    package var originFailure: OriginFailure {
        switch failure {
        case .connectTimeout, .sendTimeout, .headTimeout, .bodyTimeout: .timeout
        // This proxy is well, but has nobody to ask.
        case .unavailable where reason == .noServer: .unreachable
        case .unavailable: .overloaded
        case .resolve, .connect, .handshake, .send, .closed: .unreachable
        case .head, .headTooLarge, .body: .malformed
        }
    }
}
