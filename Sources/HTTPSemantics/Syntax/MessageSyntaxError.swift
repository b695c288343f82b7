/// Why a message was refused, and where. The bytes after it on its connection cannot be trusted: respond and close.
public struct MessageSyntaxError: Error, Sendable, Equatable {
    /// The rule that the message breaks.
    public let reason: Reason
    /// Offset of the offending byte or line: from the first byte given for the head, or of the body.
    public let position: Int

    @usableFromInline
    init(_ reason: Reason, at position: Int) {
        self.reason = reason
        self.position = position
    }

    /// The reason's fixed name, for log and metric.
    public var name: StaticString { reason.name }
    /// The status of the response to a client's malformed request. A malformed response of an origin results in 502
    /// instead.
    public var status: Status { reason.status }
    /// One line for people.
    public var explanation: StaticString { reason.explanation }
}

extension MessageSyntaxError {
    /// All rules that a message can break, grouped by the part of the message.
    public enum Reason: UInt8, Sendable, CaseIterable, BitwiseCopyable {
        // Start line
        case tooManyEmptyLines, malformedRequestLine, malformedStatusLine, tlsHello, proxyProtocol
        case methodTooLong, targetInvalid, targetTooLong, versionInvalid, versionNotSupported
        // Lines
        case bareLineFeed, headTooLarge, tooManyFields
        case foldedLine, fieldNameInvalid, spaceBeforeColon, fieldValueInvalid
        // Field values
        case hostMissing, hostRepeated, hostInvalid
        case connectionOptionInvalid, tooManyConnectionOptions
        case contentLengthInvalid, contentLengthRepeated, contentLengthWithTransferEncoding
        case transferEncodingInvalid, transferEncodingInHTTP10, chunkedNotFinal, chunkedRepeated, transferCodingUnknown
        // Chunks
        case chunkSizeInvalid, chunkSizeTooLarge, chunkExtensionInvalid, chunkExtensionsTooLong, chunkEndMissing
        case trailersTooLarge

        /// The fixed name, for log and metric.
        public var name: StaticString { facts.name }
        /// The status of the error response to a client's request.
        public var status: Status { facts.status }
        /// One line for people.
        public var explanation: StaticString { facts.explanation }

        private var facts: (name: StaticString, status: Status, explanation: StaticString) {
            switch self {
            case .tooManyEmptyLines:
                ("too-many-empty-lines", .badRequest, "More empty lines before the request than are tolerated.")
            case .malformedRequestLine:
                (
                    "malformed-request-line", .badRequest,
                    "The request line must be a method, a target and a version, separated by single spaces."
                )
            case .tlsHello:
                ("tls-hello", .badRequest, "The client speaks TLS, but this port is for plain HTTP.")
            case .proxyProtocol:
                (
                    "proxy-protocol", .badRequest,
                    "The PROXY protocol is not supported: let what is in front send X-Forwarded-For instead."
                )
            case .malformedStatusLine:
                (
                    "malformed-status-line", .badGateway,
                    "The status line is not a version, a three-digit code and a phrase."
                )
            case .methodTooLong:
                ("method-too-long", .notImplemented, "The method is too long.")
            case .targetInvalid:
                (
                    "target-invalid", .badRequest,
                    "The request target is not valid for this method, or contains an invalid byte."
                )
            case .targetTooLong:
                ("target-too-long", .uriTooLong, "The request target is too long.")
            case .versionInvalid:
                ("version-invalid", .badRequest, "The protocol version is malformed.")
            case .versionNotSupported:
                ("version-not-supported", .versionNotSupported, "Only HTTP/1.0 and HTTP/1.1 are supported.")
            case .bareLineFeed:
                ("bare-line-feed", .badRequest, "A line ends with LF instead of CR LF.")
            case .headTooLarge:
                ("head-too-large", .requestHeaderFieldsTooLarge, "The head is too large.")
            case .tooManyFields:
                ("too-many-fields", .requestHeaderFieldsTooLarge, "There are too many field lines.")
            case .foldedLine:
                ("folded-line", .badRequest, "A field line starts with white space.")
            case .fieldNameInvalid:
                ("field-name-invalid", .badRequest, "A field name is missing or not a token.")
            case .spaceBeforeColon:
                ("space-before-colon", .badRequest, "There is white space between a field name and its colon.")
            case .fieldValueInvalid:
                ("field-value-invalid", .badRequest, "A field value contains a control character.")
            case .hostMissing:
                ("host-missing", .badRequest, "The Host field is missing.")
            case .hostRepeated:
                ("host-repeated", .badRequest, "There is more than one Host field.")
            case .hostInvalid:
                ("host-invalid", .badRequest, "The Host field is empty or not a host with an optional port.")
            case .connectionOptionInvalid:
                (
                    "connection-option-invalid", .badRequest,
                    "The Connection field contains something that is not a token."
                )
            case .tooManyConnectionOptions:
                (
                    "too-many-connection-options", .badRequest,
                    "The Connection field has too many members, or is too long."
                )
            case .contentLengthInvalid:
                ("content-length-invalid", .badRequest, "The Content-Length field is not one decimal number in range.")
            case .contentLengthRepeated:
                ("content-length-repeated", .badRequest, "There is more than one Content-Length.")
            case .contentLengthWithTransferEncoding:
                (
                    "content-length-with-transfer-encoding", .badRequest,
                    "Content-Length and Transfer-Encoding must not both be present."
                )
            case .transferEncodingInvalid:
                ("transfer-encoding-invalid", .badRequest, "The Transfer-Encoding field is malformed.")
            case .transferEncodingInHTTP10:
                ("transfer-encoding-in-http-1.0", .badRequest, "Transfer-Encoding is not allowed in HTTP/1.0.")
            case .chunkedNotFinal:
                ("chunked-not-final", .badRequest, "The final transfer coding must be chunked.")
            case .chunkedRepeated:
                ("chunked-repeated", .badRequest, "The transfer coding chunked is applied twice.")
            case .transferCodingUnknown:
                ("transfer-coding-unknown", .notImplemented, "The only supported transfer coding is chunked.")
            case .chunkSizeInvalid:
                ("chunk-size-invalid", .badRequest, "A chunk size is not a hexadecimal number followed by CR LF.")
            case .chunkSizeTooLarge:
                ("chunk-size-too-large", .badRequest, "A chunk size is too large.")
            case .chunkExtensionInvalid:
                ("chunk-extension-invalid", .badRequest, "A chunk extension is malformed.")
            case .chunkExtensionsTooLong:
                ("chunk-extensions-too-long", .badRequest, "The chunk framing is too large relative to the data.")
            case .chunkEndMissing:
                ("chunk-end-missing", .badRequest, "A chunk's data is not followed by CR LF.")
            case .trailersTooLarge:
                ("trailers-too-large", .requestHeaderFieldsTooLarge, "The trailer section is too large.")
            }
        }
    }
}
