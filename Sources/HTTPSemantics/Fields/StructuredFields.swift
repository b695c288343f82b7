import RawStructuredFieldValues

/// Parses structured fields (RFC 9651) of a message, all lines of a name together. Off the hot path: allocates.
///
/// A value that is too long counts as one that does not parse: the library compares each key with all before it, so a
/// few kilobytes more would block the loop for a quarter of a second.
enum StructuredFields {
    /// Bytes of a dictionary.
    static let longestDictionary = 4096
    /// Bytes of a list: enough for 128 cache groups with names of 60 bytes.
    static let longestList = 8192

    static func dictionary(_ fields: FieldView, named name: Span<UInt8>) -> OrderedMap<String, ItemOrInnerList>? {
        guard let bytes = combinedValue(fields, named: name, longest: longestDictionary) else { return nil }
        var parser = StructuredFieldValueParser(bytes)
        return try? parser.parseDictionaryFieldValue()
    }

    static func list(_ fields: FieldView, named name: Span<UInt8>) -> [ItemOrInnerList]? {
        guard let bytes = combinedValue(fields, named: name, longest: longestList) else { return nil }
        var parser = StructuredFieldValueParser(bytes)
        return try? parser.parseListFieldValue()
    }

    /// RFC 9110 §5.3; `nil` if there is no such line, or the value is too long.
    private static func combinedValue(_ fields: FieldView, named name: Span<UInt8>, longest: Int) -> [UInt8]? {
        guard var index = fields.firstIndex(named: name) else { return nil }
        var bytes: [UInt8] = []
        while true {
            let value = fields.value(at: index)
            guard bytes.count + value.count <= longest else { return nil }
            for position in 0..<value.count { bytes.append(value[position]) }
            guard let next = fields.firstIndex(named: name, from: index + 1) else { return bytes }
            bytes.append(UInt8(ascii: ","))
            bytes.append(UInt8(ascii: " "))
            index = next
        }
    }
}
