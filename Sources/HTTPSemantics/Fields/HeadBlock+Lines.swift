public import Bytes

extension HeadBlock {
    /// The fields in `bytes`, which are complete lines as `StoredFields` writes them: `Name: value CRLF`, one behind the other.
    ///
    /// What is stored by the hundred thousand keeps no list of its lines: those who need it, which a plain hit does not, find them anew.
    public init(lines bytes: ByteSlice) {
        let text = bytes.span
        var lines: [FieldLine] = []
        lines.reserveCapacity(12)
        var present: FieldSet = []
        var start = 0
        while let nameEnd = text.firstIndex(of: UInt8(ascii: ":"), from: start),
              let valueEnd = text.firstIndex(of: UInt8(ascii: "\r"), from: nameEnd) {
            let field = KnownField.recognise(text.extracting(start..<nameEnd))
            lines.append(
                FieldLine(name: ByteRange(start..<nameEnd), value: ByteRange(min(nameEnd + 2, valueEnd)..<valueEnd), field: field))
            present.insert(FieldSet(field))
            start = valueEnd + 2
        }
        self.init(bytes: bytes, lines: lines, present: present)
    }
}
