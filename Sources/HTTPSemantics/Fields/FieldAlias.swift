import Bytes

/// Field names that are equal to CGI and its descendants (WSGI, Rack, PHP): they map `X-Tenant` to `HTTP_X_TENANT` (RFC
/// 3875 §4.1.18), as well as `X_Tenant` and, on some servers, `X.Tenant`. If this proxy told such names apart, a
/// request could pass such an origin a value that neither its key nor `Vary` covers.
extension Span where Element == UInt8 {
    /// Whether the names differ at most in the case of letters and in the separators of words.
    public func isAlias(of name: Span<UInt8>) -> Bool {
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
    /// The index of the first line at or after `start` whose name is an alias of `name` but not equal to it.
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
    /// Appends the lines with aliases of `name` to a key, for origins that may read them as `name`. The bytes 3 before
    /// each name and 1 before each value occur in neither.
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
