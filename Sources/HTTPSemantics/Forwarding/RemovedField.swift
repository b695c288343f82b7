public import Bytes

/// A field of a client's request that the origin does not get, for its own safety or that of other clients. What is for
/// one connection (RFC 9110 §7.6.1), or is replaced by what says the same, is none.
public struct RemovedField: Sendable {
    /// Why it does not go on.
    public enum Reason: Sendable, CaseIterable {
        /// Only a trusted proxy is believed there: the scheme, or who sent the request.
        case untrusted
        /// It goes on only where it is part of the key (`KeyedForwarding`).
        case notInKey
        /// Its name has other bytes than letters, digits and hyphens.
        case oddName
        /// It stands in the trailer section and may not (RFC 9110 §6.5.1), or is one of the above.
        case trailer
    }

    /// The name as it was sent.
    public let name: ByteSlice
    /// Why it does not go on.
    public let reason: Reason

    /// The field called `name`.
    public init(_ name: ByteSlice, _ reason: Reason) { (self.name, self.reason) = (name, reason) }
}
