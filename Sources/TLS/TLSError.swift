import COpenSSL

/// A mistake in a certificate file, a key file or another file of TLS, or in settings that name it.
public struct TLSSettingsError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file, as the settings name it; empty if it is not about one file.
    public let file: String
    /// The mistake, and how the operator mends it.
    public let explanation: String

    public init(file: String, _ explanation: String) {
        (self.file, self.explanation) = (file, explanation)
    }

    public var description: String { file.isEmpty ? explanation : "\(file): \(explanation)" }
}

/// Why a handshake or an encrypted connection failed.
public struct TLSFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure; the names stand in logs and metrics.
    public enum Kind: String, Sendable, CaseIterable {
        /// The peer's bytes are no TLS or break its rules, or both sides have no version or cipher in common.
        case protocolError = "protocol"
        /// The peer's certificate is refused.
        case certificate
        /// The peer has refused with an alert.
        case alert
        /// The peer, or the network, ended the connection.
        case cut
        /// Memory or descriptors are short here.
        case shortage
    }

    public let kind: Kind
    /// The reason, in the words of OpenSSL or of the system.
    public let reason: String

    public init(_ kind: Kind, _ reason: String) {
        (self.kind, self.reason) = (kind, reason)
    }

    public var description: String { reason }
}

/// The errors that OpenSSL has left for this thread. Makes strings: not for the hot path.
enum OpenSSLErrors {
    /// The first error of the queue, which is emptied; 0 if there is none.
    static func takeFirst() -> UInt {
        let first = ERR_get_error()
        while ERR_get_error() != 0 {}
        return first
    }

    /// The words for an error code.
    static func text(_ code: UInt) -> String {
        guard code != 0, let text = unsafe ERR_reason_error_string(code) else { return "unknown error" }
        return unsafe String(cString: text)
    }

    /// The words for the first error of the queue, which is emptied.
    static func takeText() -> String { text(takeFirst()) }
}
