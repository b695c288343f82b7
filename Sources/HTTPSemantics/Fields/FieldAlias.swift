import Bytes

/// Names that are one and the same to CGI and its descendants (WSGI, Rack, PHP): there `X-Tenant` is `HTTP_X_TENANT`
/// (RFC 3875 §4.1.18), and so are `X_Tenant` and, on some servers, `X.Tenant`. Where they differ here, a request could
/// tell such an origin what neither its key nor `Vary` sees.
extension Span where Element == UInt8 {
    /// Whether the names are the same but for their letters' case and what separates their words.
    func isAlias(of name: Span<UInt8>) -> Bool {
        count == name.count && beginsLike(name)
    }

    /// Whether this name begins with `start` or an alias of it. `start` is no longer than the name.
    func beginsLike(_ start: Span<UInt8>) -> Bool {
        for index in 0..<start.count where self[index].foldedInName != start[index].foldedInName { return false }
        return true
    }

    /// Whether this name begins with the constant `start` or an alias of it.
    func beginsLike(_ start: StaticString) -> Bool { beginsLike(start.bytes) }
}

extension UInt8 {
    fileprivate var foldedInName: UInt8 { isPlainInName ? lowercasedASCII : UInt8(ascii: "-") }
}

extension FieldView {
    /// The index of the first line at or after `start` that has another name than `name`, though an alias of it.
    func firstIndex(ofAliasOf name: Span<UInt8>, from start: Int = 0) -> Int? {
        var index = start
        while index < lines.count {
            let other = self.name(at: index)
            if other.isAlias(of: name), !other.isEqualIgnoringCase(to: name) { return index }
            index += 1
        }
        return nil
    }
}

extension ByteBuffer {
    /// Appends the lines with aliases of `name` to a key, where they go to origins that may take them for it: with 3
    /// before each name and 1 before each value, which stand in none of them.
    func append(aliasesOf name: Span<UInt8>, in fields: FieldView) {
        var line = fields.firstIndex(ofAliasOf: name)
        while let index = line {
            append(3)
            append(lowercasing: fields.name(at: index))
            append(1)
            append(fields.value(at: index))
            line = fields.firstIndex(ofAliasOf: name, from: index + 1)
        }
    }
}
