public import Bytes

/// A proxy error type: a problem between this proxy and the next hop (RFC 9209 §2.3).
public enum ProxyError: UInt8, Sendable, CaseIterable {
    case dnsTimeout, dnsError, destinationNotFound, destinationUnavailable, destinationIPProhibited
    case destinationIPUnroutable, connectionRefused, connectionTerminated, connectionTimeout
    case connectionReadTimeout, connectionWriteTimeout, connectionLimitReached, tlsProtocolError
    case tlsCertificateError, tlsAlertReceived, httpRequestError, httpRequestDenied
    case httpResponseIncomplete, httpResponseHeaderSectionSize, httpResponseHeaderSize
    case httpResponseBodySize, httpResponseTrailerSectionSize, httpResponseTrailerSize
    case httpResponseTransferCoding, httpResponseContentCoding, httpResponseTimeout, httpUpgradeFailed
    case httpProtocolError, proxyInternalResponse, proxyInternalError, proxyConfigurationError
    case proxyLoopDetected

    /// The name of the proxy error type.
    public var token: StaticString {
        switch self {
        case .dnsTimeout: "dns_timeout"
        case .dnsError: "dns_error"
        case .destinationNotFound: "destination_not_found"
        case .destinationUnavailable: "destination_unavailable"
        case .destinationIPProhibited: "destination_ip_prohibited"
        case .destinationIPUnroutable: "destination_ip_unroutable"
        case .connectionRefused: "connection_refused"
        case .connectionTerminated: "connection_terminated"
        case .connectionTimeout: "connection_timeout"
        case .connectionReadTimeout: "connection_read_timeout"
        case .connectionWriteTimeout: "connection_write_timeout"
        case .connectionLimitReached: "connection_limit_reached"
        case .tlsProtocolError: "tls_protocol_error"
        case .tlsCertificateError: "tls_certificate_error"
        case .tlsAlertReceived: "tls_alert_received"
        case .httpRequestError: "http_request_error"
        case .httpRequestDenied: "http_request_denied"
        case .httpResponseIncomplete: "http_response_incomplete"
        case .httpResponseHeaderSectionSize: "http_response_header_section_size"
        case .httpResponseHeaderSize: "http_response_header_size"
        case .httpResponseBodySize: "http_response_body_size"
        case .httpResponseTrailerSectionSize: "http_response_trailer_section_size"
        case .httpResponseTrailerSize: "http_response_trailer_size"
        case .httpResponseTransferCoding: "http_response_transfer_coding"
        case .httpResponseContentCoding: "http_response_content_coding"
        case .httpResponseTimeout: "http_response_timeout"
        case .httpUpgradeFailed: "http_upgrade_failed"
        case .httpProtocolError: "http_protocol_error"
        case .proxyInternalResponse: "proxy_internal_response"
        case .proxyInternalError: "proxy_internal_error"
        case .proxyConfigurationError: "proxy_configuration_error"
        case .proxyLoopDetected: "proxy_loop_detected"
        }
    }

    /// The recommended status of a response generated for this error. If RFC 9209 recommends none: 400 or 500.
    public var recommendedStatus: Status {
        switch self {
        case .httpRequestError: Status(400)
        case .httpRequestDenied: Status(403)
        case .destinationNotFound, .proxyInternalResponse, .proxyInternalError, .proxyConfigurationError: Status(500)
        case .dnsError, .destinationIPProhibited, .destinationIPUnroutable, .connectionRefused,
            .connectionTerminated, .tlsProtocolError, .tlsCertificateError, .tlsAlertReceived,
            .httpResponseIncomplete, .httpResponseHeaderSectionSize, .httpResponseHeaderSize,
            .httpResponseBodySize, .httpResponseTrailerSectionSize, .httpResponseTrailerSize,
            .httpResponseTransferCoding, .httpResponseContentCoding, .httpUpgradeFailed,
            .httpProtocolError, .proxyLoopDetected:
            Status(502)
        case .destinationUnavailable, .connectionLimitReached: Status(503)
        case .dnsTimeout, .connectionTimeout, .connectionReadTimeout, .connectionWriteTimeout,
            .httpResponseTimeout:
            Status(504)
        }
    }
}

/// Writes `Proxy-Status` lines under this proxy's name (RFC 9209), after the lines received from upstream.
public struct ProxyStatusWriter: Sendable {
    private let prefix: ByteSlice

    /// - Parameter name: names this deployment, not the software.
    public init(name: ByteSlice) {
        let buffer = ByteBuffer(capacity: 64)
        buffer.append("Proxy-Status: ")
        buffer.appendStructuredName(name.span)
        prefix = buffer.copied()
    }

    /// Appends the line with the error that made this proxy generate the response.
    /// - Parameter details: a sentence with further information (RFC 9209 §2.1.5).
    public func write(_ error: ProxyError, details: StaticString? = nil, to buffer: ByteBuffer) {
        buffer.append(prefix)
        buffer.append("; error=")
        buffer.append(error.token)
        if let details {
            buffer.append("; details=")
            buffer.appendStructuredString(details.bytes)
        }
        buffer.append("\r\n")
    }
}
