import Bytes

/// Messages whose content is generated over time, and must be forwarded piece by piece as it arrives.
extension FieldView {
    /// Whether the sender requests incremental forwarding: `Incremental: ?1` (RFC 10036). A value other than one
    /// Boolean counts as absent; parameters are ignored.
    public var asksForIncrementalForwarding: Bool {
        guard contains(.other) else { return false }
        var asks = false
        var hasLine = false
        // `Incremental` is no `KnownField`: only forwarded messages are searched for it.
        for index in lines.indices where lines[index].field == .other {
            let name = name(at: index)
            guard name.count == 11, name.isEqualIgnoringCase(to: "incremental") else { continue }
            // Two lines are a List, not a Boolean.
            if hasLine { return false }
            hasLine = true
            let item = value(at: index).withoutParameters()
            asks = item.count == 2 && item[0] == UInt8(ascii: "?") && item[1] == UInt8(ascii: "1")
        }
        return asks
    }

    /// Whether the content of a response with these fields is generated over time, as `Incremental` or the media type
    /// states (server-sent events; a camera's images).
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
    /// Whether the value is the media type `type`, with any parameters. Stops at the first byte that differs.
    fileprivate func isMediaType(_ type: StaticString) -> Bool {
        let length = type.utf8CodeUnitCount
        return count >= length && extracting(0..<length).isEqualIgnoringCase(to: type)
            && withoutParameters().count == length
    }

    /// The text before the first `;`, without trailing white space.
    @_lifetime(copy self)
    fileprivate func withoutParameters() -> Span<UInt8> {
        var end = 0
        while end < count, self[end] != UInt8(ascii: ";") { end += 1 }
        while end > 0, self[end - 1] == UInt8(ascii: " ") || self[end - 1] == UInt8(ascii: "\t") { end -= 1 }
        return extracting(0..<end)
    }
}
