/// An error of HTTP/2 by which one side ends a stream or a connection. A closed list, so that each has a counter of its own.
public struct HTTP2Error: Sendable, Hashable {
    /// The codes of RFC 9113 §7, in their order, and one for all others.
    public enum Code: UInt8, PublicName {
        case noError, protocolError, internalError, flowControlError, settingsTimeout, streamClosed, frameSizeError
        case refusedStream, cancel, compressionError, connectError, enhanceYourCalm, inadequateSecurity, http11Required
        case other

        /// The code on the wire.
        public var number: UInt32 { UInt32(rawValue) }

        /// As the RFC writes it.
        public var name: StaticString {
            switch self {
            case .noError: "NO_ERROR"
            case .protocolError: "PROTOCOL_ERROR"
            case .internalError: "INTERNAL_ERROR"
            case .flowControlError: "FLOW_CONTROL_ERROR"
            case .settingsTimeout: "SETTINGS_TIMEOUT"
            case .streamClosed: "STREAM_CLOSED"
            case .frameSizeError: "FRAME_SIZE_ERROR"
            case .refusedStream: "REFUSED_STREAM"
            case .cancel: "CANCEL"
            case .compressionError: "COMPRESSION_ERROR"
            case .connectError: "CONNECT_ERROR"
            case .enhanceYourCalm: "ENHANCE_YOUR_CALM"
            case .inadequateSecurity: "INADEQUATE_SECURITY"
            case .http11Required: "HTTP_1_1_REQUIRED"
            case .other: "other"
            }
        }
    }

    /// The code; `other` if RFC 9113 does not have it.
    public let code: Code
    /// Whether the client has sent it.
    public let isByClient: Bool

    /// - Parameter number: the code on the wire.
    public init(_ number: UInt32, byClient: Bool) {
        code = Code(rawValue: UInt8(clamping: number)) ?? .other
        isByClient = byClient
    }

    private init(_ code: Code, isByClient: Bool) { (self.code, self.isByClient) = (code, isByClient) }

    /// Every error, in the order of `position`.
    static let all = [false, true].flatMap { side in Code.allCases.map { HTTP2Error($0, isByClient: side) } }
    static let count = 30

    /// The index in `all`.
    @usableFromInline var position: Int { (isByClient ? Self.count / 2 : 0) + Int(code.rawValue) }

    /// The labels of its sample.
    var labels: [(name: String, value: String)] {
        [("by", isByClient ? "client" : "proxy"), ("code", "\(code.name)")]
    }
}
