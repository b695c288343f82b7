internal import CLibevent
internal import Glibc

/// Why a name has no address.
public enum ResolveError: String, Error, Hashable, Sendable {
    /// The name does not exist, or has no address of the wanted family.
    case notFound = "dns_not_found"
    /// No server answered in time.
    case timedOut = "dns_timeout"
    /// A server refused, failed or answered with nonsense.
    case serverFailed = "dns_server_failure"
    /// Not a host name: empty, too long or with a zero byte.
    case badName = "dns_bad_name"
    /// This machine could not ask (memory, descriptors).
    case localFailure = "dns_local_failure"

    /// From a code of `evdns_getaddrinfo`.
    init(code: Int32) {
        switch code {
        case EAI_NONAME, EVUTIL_EAI_NODATA, EVUTIL_EAI_ADDRFAMILY: self = .notFound
        case EAI_AGAIN: self = .timedOut
        case EAI_MEMORY, EAI_SYSTEM: self = .localFailure
        default: self = .serverFailed
        }
    }
}
