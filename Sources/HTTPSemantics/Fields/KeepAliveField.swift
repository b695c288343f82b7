import Bytes

extension FieldView {
    /// For how many seconds the sender of `Keep-Alive` keeps this connection open while it waits for the next request;
    /// 0 if it accepts no further request (`max=0`), `nil` if the field states neither. At most `UInt32.max`.
    ///
    /// `timeout=N, max=N`: described only by RFC 2068 §19.7.1.1, and registered because servers still send it.
    public var keepAliveSeconds: UInt32? {
        guard contains(.keepAlive) else { return nil }
        var seconds: UInt32?
        var members = ListIterator(self, .keepAlive)
        while let member = members.next() {
            guard let equals = member.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let name = member.extracting(0..<equals).trimmingOptionalWhitespace()
            let value = member.extracting(equals + 1..<member.count).trimmingOptionalWhitespace()
            if name.isEqualIgnoringCase(to: "timeout"), let time = value.wholeSeconds {
                seconds = min(time, seconds ?? time)
            } else if name.isEqualIgnoringCase(to: "max"), value.wholeSeconds == 0 {
                seconds = 0
            }
        }
        return seconds
    }
}

extension Span where Element == UInt8 {
    /// A decimal number, perhaps quoted, without its fraction.
    fileprivate var wholeSeconds: UInt32? {
        var digits = self
        if digits.count >= 2, digits[0] == UInt8(ascii: "\""), digits[digits.count - 1] == UInt8(ascii: "\"") {
            digits = digits.extracting(1..<digits.count - 1)
        }
        if let point = digits.firstIndex(of: UInt8(ascii: ".")) { digits = digits.extracting(0..<point) }
        return digits.decimal(saturatingAt: UInt64(UInt32.max)).map { UInt32(clamping: $0) }
    }
}
