import CLibevent
import Glibc

/// Why a name has no address.
public enum ResolveError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name does not exist, or has no address of the wanted family.
    case notFound
    /// No server answered in time.
    case timedOut
    /// A server refused, failed or answered with nonsense.
    case serverFailed
    /// Not a host name: empty, too long or with a zero byte.
    case badName
    /// This machine could not ask (memory, descriptors).
    case localFailure

    /// From a code of `evdns_getaddrinfo` other than `EAI_FAIL`.
    init(code: Int32) {
        switch code {
        case EAI_NONAME, coalesced_eai_no_data, coalesced_eai_address_family: self = .notFound
        case EAI_AGAIN: self = .timedOut
        case EAI_MEMORY, EAI_SYSTEM: self = .localFailure
        default: self = .serverFailed
        }
    }

    /// For the diagnostics log.
    public var description: String {
        switch self {
        case .notFound: "the name has no address"
        // evdns takes SERVFAIL for a time-out.
        case .timedOut: "no name server answered in time, or none but with a failure"
        case .serverFailed: "the name server refused, or answered with nonsense"
        case .badName: "not a host name"
        case .localFailure: "this machine could not ask, for want of memory or descriptors"
        }
    }
}
