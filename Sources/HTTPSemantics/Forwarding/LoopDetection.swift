public import Bytes

/// Counts earlier passes of a request through this proxy: `CDN-Loop` (RFC 8586) and `Via` (RFC 9110 §7.6.3).
public struct LoopDetection: Sendable {
    private let name: ByteSlice

    /// - Parameter name: the pseudonym under which this deployment forwards: a token that no other proxy should use.
    public init(name: ByteSlice) { self.name = name }

    /// How often the request's fields name this proxy: the larger of the two counts. The caller decides how many are a
    /// loop, since other proxies may have the same name.
    @inlinable
    public func visits(_ fields: FieldView) -> Int {
        fields.contains(.cdnLoop) || fields.contains(.via) ? count(fields) : 0
    }

    @usableFromInline
    func count(_ fields: FieldView) -> Int {
        var (loops, vias) = (0, 0)
        var members = ListIterator(fields, .cdnLoop, quoting: .quotedStrings)
        while let member = members.next() {
            let end = member.firstIndex(of: UInt8(ascii: ";")) ?? member.count
            if isOurs(member.extracting(0..<end).trimmingOptionalWhitespace()) { loops += 1 }
        }
        members = ListIterator(fields, .via)
        while let member = members.next() {
            // received-protocol RWS received-by [ RWS comment ]
            guard let space = member.firstIndex(of: 0x20) else { continue }
            let rest = member.extracting(space...).trimmingOptionalWhitespace()
            if isOurs(rest.extracting(0..<(rest.firstIndex(of: 0x20) ?? rest.count))) { vias += 1 }
        }
        return max(loops, vias)
    }

    /// Appends the `CDN-Loop` line to a forwarded request, after the received ones (RFC 8586 §2).
    public func writeLoop(to buffer: ByteBuffer) {
        buffer.append("CDN-Loop: ")
        buffer.append(name)
        buffer.append("\r\n")
    }

    /// Appends this proxy's `Via` line, after the received ones.
    public func writeVia(received version: HTTPVersion, to buffer: ByteBuffer) {
        buffer.append("Via: ")
        buffer.append(version.shortName)
        buffer.append(" ")
        buffer.append(name)
        buffer.append("\r\n")
    }

    private func isOurs(_ other: Span<UInt8>) -> Bool { other.isEqualIgnoringCase(to: name.span) }
}
