public import Bytes

/// The target URI of a request (RFC 9110 §7.1), the base for references in its response.
public struct TargetURI: Sendable {
    /// Whether the scheme is https.
    public let isSecure: Bool
    /// Host and port as in `Host`.
    public let authority: ByteSlice
    /// Path and query as sent.
    public let pathAndQuery: ByteSlice

    public init(isSecure: Bool, authority: ByteSlice, pathAndQuery: ByteSlice) {
        self.isSecure = isSecure
        self.authority = authority
        self.pathAndQuery = pathAndQuery
    }

    /// The path and query of `reference`, if it has the same origin: scheme, host and port (RFC 9110 §4.3.1). Resolved
    /// by RFC 3986 §5.2.2; the fragment is omitted. `nil` for another origin or no URI reference.
    public func sameOriginTarget(of reference: Span<UInt8>) -> ByteSlice? {
        var rest = reference
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) { rest = rest.extracting(0..<hash) }
        for index in 0..<rest.count where rest[index] <= 0x20 || rest[index] >= 0x7f { return nil }

        if let colon = Self.schemeEnd(rest) {
            let scheme = rest.extracting(0..<colon)
            guard isSecure ? scheme.isEqualIgnoringCase(to: "https") : scheme.isEqualIgnoringCase(to: "http") else {
                return nil
            }
            rest = rest.extracting((colon + 1)...)
            guard rest.hasPrefix("//") else { return nil }
        }
        if rest.hasPrefix("//") {
            rest = rest.extracting(2...)
            var end = 0
            while end < rest.count, rest[end] != UInt8(ascii: "/"), rest[end] != UInt8(ascii: "?") { end += 1 }
            guard hasAuthority(rest.extracting(0..<end)) else { return nil }
            rest = rest.extracting(end...)
            return rest.isEmpty || rest[0] == UInt8(ascii: "?") ? Self.joined("/", rest) : Self.normalised(rest)
        }

        let base = pathAndQuery.span
        let query = base.firstIndex(of: UInt8(ascii: "?")) ?? base.count
        if rest.isEmpty { return pathAndQuery }
        if rest[0] == UInt8(ascii: "?") { return Self.joined(base.extracting(0..<query), rest) }
        if rest[0] == UInt8(ascii: "/") { return Self.normalised(rest) }
        // Merge: the base's path up to its last slash.
        var slash = query
        while slash > 0, base[slash - 1] != UInt8(ascii: "/") { slash -= 1 }
        return Self.normalised(Self.joined(base.extracting(0..<slash), rest).span)
    }

    private func hasAuthority(_ other: Span<UInt8>) -> Bool {
        let port: UInt16 = isSecure ? 443 : 80
        let (own, theirs) = (ByteBuffer(capacity: 64), ByteBuffer(capacity: 64))
        own.appendKeyHost(authority.span, defaultPort: port)
        theirs.appendKeyHost(other, defaultPort: port)
        return own.span.isEqual(to: theirs.span)
    }

    /// The position of the colon after a scheme: `scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`.
    private static func schemeEnd(_ text: Span<UInt8>) -> Int? {
        for index in 0..<text.count {
            let byte = text[index]
            let isLetter = byte.lowercasedASCII &- 0x61 < 26
            if byte == UInt8(ascii: ":") { return index > 0 ? index : nil }
            let isOther = byte &- 0x30 < 10 || byte == 0x2b || byte == 0x2d || byte == 0x2e
            guard isLetter || (index > 0 && isOther) else { return nil }
        }
        return nil
    }

    private static func joined(_ left: Span<UInt8>, _ right: Span<UInt8>) -> ByteSlice {
        let buffer = ByteBuffer(capacity: left.count + right.count)
        buffer.append(left)
        buffer.append(right)
        return buffer.copied()
    }

    private static func joined(_ left: StaticString, _ right: Span<UInt8>) -> ByteSlice {
        joined(ByteSlice(left).span, right)
    }

    /// A path without dot segments, and its query.
    private static func normalised(_ target: Span<UInt8>) -> ByteSlice {
        let end = target.firstIndex(of: UInt8(ascii: "?")) ?? target.count
        return joined(withoutDotSegments(target.extracting(0..<end)).span, target.extracting(end...))
    }

    /// RFC 3986 §5.2.4, remove_dot_segments.
    static func withoutDotSegments(_ path: Span<UInt8>) -> ByteSlice {
        let output = ByteBuffer(capacity: path.count + 1)
        var position = 0
        while position < path.count {
            // Each segment with the slash in front of it.
            let start = position + 1
            var next = start
            while next < path.count, path[next] != UInt8(ascii: "/") { next += 1 }
            let segment = path.extracting(min(start, next)..<next)
            let isLast = next >= path.count
            if segment.isEqual(to: "..") {
                removeLastSegment(of: output)
                if isLast { output.append("/") }
            } else if segment.isEqual(to: ".") {
                if isLast { output.append("/") }
            } else {
                output.append("/")
                output.append(segment)
            }
            position = next
        }
        return output.copied()
    }

    private static func removeLastSegment(of path: ByteBuffer) {
        var length = path.count
        while length > 0 {
            length -= 1
            if path.span[length] == UInt8(ascii: "/") { break }
        }
        path.truncate(to: length)
    }
}
