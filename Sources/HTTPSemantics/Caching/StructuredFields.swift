import RawStructuredFieldValues

/// Reads structured fields (RFC 9651) of a message, all lines of a name together. Off the hot path: allocates.
enum StructuredFields {
    static func dictionary(_ fields: FieldView, named name: Span<UInt8>) -> OrderedMap<String, ItemOrInnerList>? {
        guard let bytes = combinedValue(fields, named: name) else { return nil }
        var parser = StructuredFieldValueParser(bytes)
        return try? parser.parseDictionaryFieldValue()
    }

    static func list(_ fields: FieldView, named name: Span<UInt8>) -> [ItemOrInnerList]? {
        guard let bytes = combinedValue(fields, named: name) else { return nil }
        var parser = StructuredFieldValueParser(bytes)
        return try? parser.parseListFieldValue()
    }

    /// RFC 9110 §5.3; `nil` where there is no such line.
    private static func combinedValue(_ fields: FieldView, named name: Span<UInt8>) -> [UInt8]? {
        guard var index = fields.firstIndex(named: name) else { return nil }
        var bytes: [UInt8] = []
        while true {
            let value = fields.value(at: index)
            for position in 0..<value.count { bytes.append(value[position]) }
            guard let next = fields.firstIndex(named: name, from: index + 1) else { return bytes }
            bytes.append(UInt8(ascii: ","))
            bytes.append(UInt8(ascii: " "))
            index = next
        }
    }
}
