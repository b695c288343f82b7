import Bytes

/// The names and values of an entry of a stream.
struct TierFields {
    private let values: [ByteSlice]

    /// - Returns: the entry's id, and its fields.
    static func read(_ entry: TierValue) throws(TierReplyError) -> (id: ByteSlice, fields: TierFields) {
        let parts = try entry.list()
        guard parts.count == 2 else { throw .malformed }
        var values: [ByteSlice] = []
        for value in try parts[1].list() { values.append(try value.text()) }
        guard values.count.isMultiple(of: 2) else { throw .malformed }
        return (try parts[0].text(), TierFields(values: values))
    }

    /// The value of the first field with this name.
    subscript(name: StaticString) -> ByteSlice? {
        var index = 0
        while index < values.count {
            let candidate = values[index]
            if candidate.span.isEqual(to: name) { return values[index + 1] }
            index += 2
        }
        return nil
    }
}
