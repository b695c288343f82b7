public import Bytes

/// Which of the fields by which a client says how its request came, before it came here, are part of a route's cache key. Only those go on: origins
/// make links, redirects and paths of them, and others get the response. Immutable, and an object, so that nothing of it is copied for a request.
public final class KeyedForwarding: Sendable {
    /// Of all those fields the ones that are known.
    static let known = FieldSet(.forwarded, .xForwardedProto, .xForwardedHost)

    /// The known ones that are in the key.
    let fields: FieldSet
    private let others: [ByteSlice]

    /// - Parameter names: of the fields in the key, in any case.
    public init(_ names: [ByteSlice]) {
        var fields: FieldSet = []
        for name in names { fields.insert(KnownField.recognise(name.span)) }
        self.fields = fields.intersection(Self.known)
        others = names.filter { Self.isClientsWord($0.span) }
    }

    /// Whether the field with `name`, which is not a known one, is of that kind and not in the key.
    func drops(_ name: Span<UInt8>) -> Bool {
        guard Self.isClientsWord(name) else { return false }
        for other in others where other.span.isEqualIgnoringCase(to: name) { return false }
        return true
    }

    /// Whether `field`, of that name, is of that kind, in a key or not.
    static func isClientsWord(_ name: Span<UInt8>, _ field: KnownField) -> Bool {
        field == .other ? isClientsWord(name) : known.contains(field)
    }

    private static let prefix = Array("x-forwarded-".utf8)
    /// What some servers take for the path or the host in place of the request's.
    private static let names = ["x-original-url", "x-original-host", "x-rewrite-url"].map { Array($0.utf8) }

    /// `X-Forwarded-…` and those that say more; with underscores too, since both are one to CGI and its like.
    private static func isClientsWord(_ name: Span<UInt8>) -> Bool {
        guard name.count > 12, name[0].lowercasedASCII == UInt8(ascii: "x") else { return false }
        return begins(name, with: prefix) || names.contains { $0.count == name.count && begins(name, with: $0) }
    }

    private static func begins(_ name: Span<UInt8>, with wanted: [UInt8]) -> Bool {
        for index in wanted.indices {
            let byte = name[index] == UInt8(ascii: "_") ? UInt8(ascii: "-") : name[index].lowercasedASCII
            guard byte == wanted[index] else { return false }
        }
        return true
    }
}
