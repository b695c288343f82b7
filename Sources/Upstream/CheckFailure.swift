import HTTPSemantics

/// The fault that one check of a place found.
package enum CheckFailure: Sendable, Hashable, CustomStringConvertible {
    /// The name of the server has no address, for this reason.
    case noAddress(String)
    /// With the system's message.
    case noConnection(String)
    /// With OpenSSL's reason.
    case handshake(String)
    /// The connection was closed before the response was complete.
    case closed
    case malformed(UpstreamError.Reason)
    case status(UInt16)
    /// The content lacks this text.
    case lacks(String)
    /// The time limit was over.
    case late(Duration)

    /// The word for the state of a server: `500`, `connect`, `timeout`.
    var word: String {
        switch self {
        case .noAddress: "resolve"
        case .noConnection: "connect"
        case .handshake: "handshake"
        case .closed: "closed"
        case .malformed(let reason): "\(reason.name ?? "malformed")"
        case .status(let status): "\(status)"
        case .lacks: "body"
        case .late: "timeout"
        }
    }

    /// For the log, after the name of the check.
    package var description: String {
        switch self {
        case .noAddress(let reason): "no address: \(reason)"
        case .noConnection(let message): "no connection: \(message)"
        case .handshake(let reason): "no TLS handshake: \(reason)"
        case .closed: "the connection was closed before the response was complete"
        case .malformed(let reason): "\(reason.explanation)"
        case .status(let status): "status \(status)"
        case .lacks(let text): "its content lacks \"\(text)\""
        case .late(let limit): "took longer than \(limit)"
        }
    }
}

/// How one check ended.
enum CheckEnd: Sendable, Equatable {
    case success
    case failed(CheckFailure)
    /// This program has no descriptor, port or memory left, which says nothing of the server.
    case undecided
}
