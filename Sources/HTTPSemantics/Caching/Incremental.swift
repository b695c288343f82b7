import Bytes

/// Messages whose content is written as things happen, and is to be forwarded piece by piece as it comes.
extension FieldView {
    /// Whether the sender asks for that: `Incremental: ?1` (RFC 10036). Anything but one Boolean is as if the field were
    /// not there; its parameters say nothing.
    public var asksForIncrementalForwarding: Bool {
        guard contains(.other) else { return false }
        var asks = false
        var hasLine = false
        // It is no `KnownField`: only messages that are forwarded are looked at.
        for index in lines.indices where lines[index].field == .other {
            let name = name(at: index)
            guard name.count == 11, name.isEqualIgnoringCase(to: "incremental") else { continue }
            // Two lines are a list, which is no Boolean.
            if hasLine { return false }
            hasLine = true
            let item = value(at: index).withoutParameters()
            asks = item.count == 2 && item[0] == UInt8(ascii: "?") && item[1] == UInt8(ascii: "1")
        }
        return asks
    }

    /// Whether a response with these fields is written as things happen: its sender says so, or its media type does
    /// (server-sent events; what a camera sends).
    var isIncremental: Bool {
        if let value = firstValue(of: .contentType),
            value.isMediaType("text/event-stream") || value.isMediaType("multipart/x-mixed-replace")
        {
            return true
        }
        return asksForIncrementalForwarding
    }
}

extension Span<UInt8> {
    /// Whether it is the media type `type`, with whatever parameters. Ends at the first byte that differs.
    fileprivate func isMediaType(_ type: StaticString) -> Bool {
        let length = type.utf8CodeUnitCount
        return count >= length && extracting(0..<length).isEqualIgnoringCase(to: type)
            && withoutParameters().count == length
    }

    /// What stands before the first `;`, without white space behind it.
    @_lifetime(copy self)
    fileprivate func withoutParameters() -> Span<UInt8> {
        var end = 0
        while end < count, self[end] != UInt8(ascii: ";") { end += 1 }
        while end > 0, self[end - 1] == UInt8(ascii: " ") || self[end - 1] == UInt8(ascii: "\t") { end -= 1 }
        return extracting(0..<end)
    }
}
