public import Bytes

/// A field of a client's request that is not forwarded, to protect the origin or other clients. Excludes hop-by-hop
/// fields (RFC 9110 §7.6.1) and fields that are replaced by an equal value.
public struct RemovedField: Sendable {
    /// Why the field is not forwarded.
    public enum Reason: Sendable, CaseIterable {
        /// Only a trusted proxy may state this: the scheme, or the sender of the request.
        case untrusted
        /// The field is forwarded only if it is part of the key (`KeyedForwarding`).
        case notInKey
        /// The name has other bytes than letters, digits and hyphens.
        case oddName
        /// The field is not allowed in the trailer section (RFC 9110 §6.5.1), or one of the above applies to it there.
        case trailer
    }

    /// The name as it was sent.
    public let name: ByteSlice
    /// Why the field is not forwarded.
    public let reason: Reason

    /// The field with this name.
    public init(_ name: ByteSlice, _ reason: Reason) { (self.name, self.reason) = (name, reason) }
}
