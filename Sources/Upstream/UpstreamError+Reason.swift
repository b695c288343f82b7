public import HTTPSemantics
import Libevent

extension UpstreamError {
    /// Why an exchange failed, where more is known than in which part of it: a closed set of our own words, which clients
    /// may see. Nothing that an origin sent is in it, and no address.
    public enum Reason: Sendable, Hashable {
        /// The response breaks a rule of its syntax.
        case syntax(MessageSyntaxError.Reason)
        // The response is none to the request
        case tooManyInterimResponses, unaskedSwitch, earlySwitch, unaskedNotModified
        // No connection
        case unreachable, forbidden, missing, reset, unanswered, queueFull, shortage
        // A connection that ends
        case closedBeforeResponse, resetBeforeResponse, notSilent, idleTimeIsUp, cutOff, resetInBody
        // Time that is over
        case requestNotTaken, headLate, bodyStalled

        /// In the log, where the response is malformed; the others are told by `UpstreamFailure.name`.
        var name: StaticString? {
            switch self {
            case .syntax(let reason): reason.name
            case .tooManyInterimResponses: "too-many-interim-responses"
            case .unaskedSwitch: "unasked-101"
            case .earlySwitch: "early-101"
            case .unaskedNotModified: "unasked-304"
            case .unreachable, .forbidden, .missing, .reset, .unanswered, .queueFull, .shortage, .closedBeforeResponse,
                .resetBeforeResponse, .notSilent, .idleTimeIsUp, .cutOff, .resetInBody, .requestNotTaken, .headLate,
                .bodyStalled:
                nil
            }
        }

        /// One sentence for people, in ASCII.
        public var explanation: StaticString {
            switch self {
            case .syntax(let reason): reason.explanation
            case .tooManyInterimResponses: "There are too many interim responses."
            case .unaskedSwitch: "A 101 answers a request that did not ask for another protocol."
            case .earlySwitch: "A 101 came before the request's content was sent."
            case .unaskedNotModified: "A 304 answers a request without conditions."
            case .unreachable: "There is no route to the address."
            case .forbidden: "This program may not connect there."
            case .missing: "There is no such socket."
            case .reset: "The connection was reset while it was made."
            case .unanswered: "Nothing answered within the connect-timeout."
            case .queueFull: "The queue of connections stayed full for the connect-timeout."
            case .shortage: "There are no descriptors, ports or memory left for a connection."
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
    /// Why there is no connection; `nil` where it was refused, or for a reason that is no case here.
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
