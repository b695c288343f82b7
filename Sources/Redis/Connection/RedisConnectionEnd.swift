package import Bytes
package import Libevent
package import TLS

/// The reason why a connection to an engine ended, or never began.
package enum RedisConnectionEnd: Error, Hashable, Sendable {
    /// The commands that prepare a connection.
    package enum SetUpStep: String, Sendable {
        case hello = "HELLO", tracking = "CLIENT TRACKING", select = "SELECT"
        case list = "FUNCTION LIST", load = "FUNCTION LOAD"
    }

    case noAddress(ResolveError)
    case notConnected(SystemError)
    /// One of the two refused the other in TLS, perhaps right after the handshake, when the engine judges the
    /// certificate that it is shown.
    case notSecured(TLSFailure)
    /// The TLS handshake was not done in time.
    case handshakeLate
    /// The connection was not ready in time.
    case setUpLate
    /// The engine refused a command that prepares the connection, in its words.
    case refused(SetUpStep, ByteSlice)
    case closedByEngine
    case broken(SystemError)
    case malformed(RESPSyntaxError)
    /// The engine answered a command that was not sent.
    case unasked
    /// No answer came for too long.
    case stalled
    /// This program needs the connection no more.
    case stopped
}

extension RedisConnectionEnd: CustomStringConvertible {
    /// For the diagnostics log.
    package var description: String {
        switch self {
        case .noAddress(let error): error.description
        case .notConnected(let error): "no connection: \(error.message)"
        case .notSecured(let failure): "no TLS with the engine: \(failure.reason)"
        case .handshakeLate:
            "the TLS handshake was not done in time; perhaps the engine does not speak TLS at this port"
        case .setUpLate: "the engine did not answer in time when the connection was prepared"
        case .refused(let step, let text): "the engine refused \(step.rawValue): \(String(text))"
        case .closedByEngine: "the engine closed the connection"
        case .broken(let error): "the connection broke: \(error.message)"
        case .malformed(let error): "the engine does not speak RESP3: \(error)"
        case .unasked: "the engine answered what it was not asked"
        case .stalled: "the engine has answered nothing for too long"
        case .stopped: "the connection is not needed any more"
        }
    }
}
