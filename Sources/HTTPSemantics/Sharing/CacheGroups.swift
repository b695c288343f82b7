import Bytes
import RawStructuredFieldValues

/// The groups that a response belongs to or invalidates (RFC 9875). Opaque strings, compared byte by byte, and only within
/// one origin.
public enum CacheGroups {
    /// Further groups in one field are omitted. RFC 9875 §2 requires support for at least 32.
    static let maxGroups = 128

    /// The groups that a response belongs to; none if the field is missing, empty or invalid.
    public static func names(in fields: FieldView) -> [String] {
        fields.contains(.cacheGroups) ? strings(fields, "cache-groups") : []
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
