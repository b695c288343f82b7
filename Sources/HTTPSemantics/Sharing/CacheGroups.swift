import Bytes
import RawStructuredFieldValues

/// The groups a response belongs to or invalidates (RFC 9875). Opaque strings, compared byte by byte, and only within
/// one origin.
///
/// Immutable; an object, since most responses have no groups and should not grow for them.
public final class CacheGroups: Sendable {
    /// Further groups in one field are omitted. RFC 9875 §2 requires support for at least 32.
    static let maxGroups = 128

    /// At least one.
    public let names: [String]
    /// The time of the request that fetched or last validated the response, in nanoseconds of the monotonic clock. An
    /// invalidation after this time applies: the origin may have generated the response before it.
    public let requestTime: Int64

    /// The groups of a response that is stored; `nil` if the field is missing, empty or invalid.
    public static func of(_ fields: FieldView, requestTime: Moment) -> CacheGroups? {
        // Checked outside of `init`, which would allocate first.
        guard fields.contains(.cacheGroups) else { return nil }
        let names = strings(fields, "cache-groups")
        return names.isEmpty ? nil : CacheGroups(names: names, requestTime: requestTime.monotonic)
    }

    private init(names: [String], requestTime: Int64) {
        self.names = names
        self.requestTime = requestTime
    }

    /// The groups that a response invalidates. The field is ignored in responses to safe methods (§3) and in errors: an
    /// error does not indicate a change.
    public static func invalidated(by fields: FieldView, method: Method, status: Status) -> [String] {
        guard fields.contains(.cacheGroupInvalidation), Invalidation.applies(method: method, status: status) else {
            return []
        }
        return strings(fields, "cache-group-invalidation")
    }

    private static func strings(_ fields: FieldView, _ name: String) -> [String] {
        guard let list = StructuredFields.list(fields, named: Array(name.utf8).span) else { return [] }
        var strings: [String] = []
        for member in list {
            // A member of another type makes the whole field invalid (RFC 9651 §1.1).
            guard case .item(let item) = member, case .string(let group) = item.rfc9651BareItem else { return [] }
            if !strings.contains(group), strings.count < maxGroups { strings.append(group) }
        }
        return strings
    }
}
