import CLibevent

/// The reason why a look-up gave no address.
public enum ResolveError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name does not exist, or has no address of the wanted family.
    case notFound
    /// No server answered in time.
    case timedOut
    /// A server refused, failed or answered with nonsense, or no program listens there.
    case serverFailed
    /// The text is not a host name: it is empty, too long or has a zero byte.
    case badName
    /// This machine could not ask, for lack of memory or descriptors.
    case localFailure

    /// Translates the outcome of a question to c-ares; `nil` if it succeeded.
    init?(_ outcome: coalesced_outcome) {
        switch outcome {
        case coalesced_found: return nil
        case coalesced_not_found: self = .notFound
        case coalesced_bad_name: self = .badName
        case coalesced_timed_out: self = .timedOut
        case coalesced_local_failure: self = .localFailure
        default: self = .serverFailed
        }
    }

    /// For the diagnostics log.
    public var description: String {
        switch self {
        case .notFound: "the name has no address"
        case .timedOut: "no name server answered in time"
        case .serverFailed: "the name server failed, refused, cannot be reached, or answered with nonsense"
        case .badName: "not a host name"
        case .localFailure: "this machine could not ask, for want of memory or descriptors"
        }
    }
}
