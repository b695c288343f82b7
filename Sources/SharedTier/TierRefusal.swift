/// The reason why this machine does not use a response in the engine. Others can write there; nothing in it is trusted.
package enum TierRefusal: String, Error, Hashable, Sendable, CaseIterable {
    /// A record of another version of the program.
    case version
    /// The record ends too early, has more behind its end, or is too large.
    case form
    /// Not the record of this key: another one with the same hash, or a foreign one.
    case otherKey = "other-key"
    /// The head is not one that this program reads from an origin.
    case head
    /// The head has a field that belongs to one connection, or `Age`.
    case connectionField = "connection-field"
    /// `Content-Length`, the announced length and the content do not agree.
    case length
    /// The stream does not begin with a head.
    case noHead = "no-head"
    /// Content is missing.
    case gap
    /// The stream has an entry that no leader writes.
    case unknownEntry = "unknown-entry"
    /// The trailers are not such as this program reads from an origin.
    case trailers
    /// `secret-file` is set, and another secret, or none, sealed this.
    case seal

    /// For the log.
    package var detail: String {
        switch self {
        case .version: "it is of another version of coalesced"
        case .form: "its record is cut short or damaged"
        case .otherKey: "it is of another URL"
        case .head: "its head is malformed"
        case .connectionField: "its head has a field that concerns one connection"
        case .length: "its content has another length than announced"
        case .noHead: "it has no head"
        case .gap: "content is missing"
        case .unknownEntry: "it has an entry that coalesced does not write"
        case .trailers: "its trailers are malformed"
        case .seal: "it has no seal of the secret in shared.secret-file"
        }
    }
}
