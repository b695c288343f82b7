import Bytes
import RawStructuredFieldValues

/// The groups a response belongs to or invalidates (RFC 9875). Opaque strings, compared byte by byte, and only
/// within one origin.
///
/// Immutable; an object because most responses have none, and are to be no larger for it.
public final class CacheGroups: Sendable {
    /// More groups than this in one field are left out. RFC 9875 §2 wants at least 32.
    static let maxGroups = 128

    /// At least one.
    public let names: [String]
    /// When the response, or its last validation, was asked for, in nanoseconds of the monotonic clock. What was
    /// invalidated since then may have been made before that.
    public let requestTime: Int64

    /// The groups of a response that is stored; `nil` where the field is missing, empty or wrong.
    public static func of(_ fields: FieldView, requestTime: Moment) -> CacheGroups? {
        // Outside of `init`, which would allocate first.
        guard fields.contains(.cacheGroups) else { return nil }
        let names = strings(fields, "cache-groups")
        return names.isEmpty ? nil : CacheGroups(names: names, requestTime: requestTime.monotonic)
    }

    private init(names: [String], requestTime: Int64) {
        self.names = names
        self.requestTime = requestTime
    }

    /// The groups that a response invalidates. Those on answers to safe methods are ignored (§3), and so are those on
    /// errors: nothing says that anything changed.
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
            // A member of another type makes the whole field wrong (RFC 9651 §1.1).
            guard case .item(let item) = member, case .string(let group) = item.rfc9651BareItem else { return [] }
            if !strings.contains(group), strings.count < maxGroups { strings.append(group) }
        }
        return strings
    }
}
