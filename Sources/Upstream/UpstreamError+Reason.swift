package import HTTPSemantics
import Libevent

extension UpstreamError {
    /// Why an exchange failed, if more than the failed step is known. A closed set with fixed texts of this program,
    /// which clients may see. The texts contain no bytes from an origin, and no address.
    package enum Reason: Sendable, Hashable {
        /// The response breaks a syntax rule.
        case syntax(MessageSyntaxError.Reason)
        // The response does not answer the request
        case tooManyInterimResponses, unaskedSwitch, earlySwitch, unaskedNotModified
        // There is no connection
        case noServer, unreachable, forbidden, missing, reset, unanswered, queueFull, shortage
        // The connection cannot be secured
        case tlsProtocol, tlsCertificate, tlsAlert, tlsCut, handshakeLate
        // The connection ended
        case closedBeforeResponse, resetBeforeResponse, notSilent, idleTimeIsUp, cutOff, resetInBody
        // A timeout has passed
        case requestNotTaken, headLate, bodyStalled

        /// The name in the log of a response that is malformed or does not answer the request, and of the lack of a
        /// server, and of a handshake; `nil` for the other reasons, for which `UpstreamFailure.name` is used.
        var name: StaticString? {
            switch self {
            case .syntax(let reason): reason.name
            case .tooManyInterimResponses: "too-many-interim-responses"
            case .unaskedSwitch: "unasked-101"
            case .earlySwitch: "early-101"
            case .unaskedNotModified: "unasked-304"
            case .noServer: "no-server"
            case .tlsProtocol: "tls-protocol"
            case .tlsCertificate: "tls-certificate"
            case .tlsAlert: "tls-alert"
            case .tlsCut: "tls-cut"
            case .unreachable, .forbidden, .missing, .reset, .unanswered, .queueFull, .shortage, .closedBeforeResponse,
                .resetBeforeResponse, .notSilent, .idleTimeIsUp, .cutOff, .resetInBody, .requestNotTaken, .headLate,
                .bodyStalled, .handshakeLate:
                nil
            }
        }

        /// One sentence for people, in ASCII.
        package var explanation: StaticString {
            switch self {
            case .syntax(let reason): reason.explanation
            case .tooManyInterimResponses: "There are too many interim responses."
            case .unaskedSwitch: "A 101 answers a request that did not ask for another protocol."
            case .earlySwitch: "A 101 came before the request's content was sent."
            case .unaskedNotModified: "A 304 answers a request without conditions."
            case .noServer: "No server takes requests at the moment."
            case .unreachable: "There is no route to the address."
            case .forbidden: "This program may not connect there."
            case .missing: "There is no such socket."
            case .reset: "The connection was reset while it was made."
            case .unanswered: "Nothing answered within the connect-timeout."
            case .queueFull: "The queue of connections stayed full for the connect-timeout."
            case .shortage: "There are no descriptors, ports or memory left for a connection."
            case .tlsProtocol: "The TLS handshake failed: the server speaks no TLS, or none that is allowed."
            case .tlsCertificate: "The server's certificate is refused."
            case .tlsAlert: "The server refused with a TLS alert."
            case .tlsCut: "The connection was closed in the TLS handshake."
            case .handshakeLate: "The TLS handshake was not complete within the connect-timeout."
            case .closedBeforeResponse: "The connection was closed before a response."
            case .resetBeforeResponse: "The connection was reset before a response."
            case .notSilent: "The connection was closed, or brought something, while it was idle."
            case .idleTimeIsUp: "The connection was closed with a 408 while it was idle."
            case .cutOff: "The connection was closed in the middle of the body."
            case .resetInBody: "The connection was reset in the middle of the body."
            case .requestNotTaken: "Nothing of the request was taken for the no-progress-timeout."
            case .headLate: "The head was not complete within the first-byte-timeout."
            case .bodyStalled: "Nothing of the body came for the no-progress-timeout."
            }
        }
    }
}

extension UpstreamError.Reason {
    /// The reason why no connection could be established; `nil` if it was refused, or for an error that has no case
    /// here.
    init?(_ error: SystemError) {
        if error.isForbidden {
            self = .forbidden
        } else if error.isMissing {
            self = .missing
        } else if error.isReset {
            self = .reset
        } else if error.isUnreachable {
            self = .unreachable
        } else {
            return nil
        }
    }
}
