public import Bytes

/// Whether a request has been here before: `CDN-Loop` (RFC 8586) and `Via` (RFC 9110 §7.6.3).
public struct LoopDetection: Sendable {
    private let name: ByteSlice

    /// - Parameter name: the pseudonym under which this deployment forwards: a token, and nobody else's.
    public init(name: ByteSlice) { self.name = name }

    /// How often this proxy is named in the fields of the request: the larger of the two counts. The caller decides how
    /// many are a loop, since other proxies may bear the same name.
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

    /// Appends the `CDN-Loop` line for a request that is forwarded, after those it came with (RFC 8586 §2).
    public func writeLoop(to buffer: ByteBuffer) {
        buffer.append("CDN-Loop: ")
        buffer.append(name)
        buffer.append("\r\n")
    }

    /// Appends our `Via` line, after those the message came with.
    public func writeVia(received version: HTTPVersion, to buffer: ByteBuffer) {
        buffer.append("Via: ")
        buffer.append(version.shortName)
        buffer.append(" ")
        buffer.append(name)
        buffer.append("\r\n")
    }

    private func isOurs(_ other: Span<UInt8>) -> Bool { other.isEqualIgnoringCase(to: name.span) }
}
