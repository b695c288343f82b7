package import Bytes

/// Makes the head that a request would have in HTTP/1.1 of its fields, as they come out of HPACK (RFC 9113 §8.3.1,
/// §8.2): so one parser, and the rules behind it, judge the requests of both versions, and a request that only HTTP/2
/// can express does not exist behind this type.
///
/// One object serves a connection while a field section arrives: sections do not interleave (RFC 9113 §4.3). Confined to
/// its loop.
///
/// ```
/// control data ─the first line of another field→ lines ─finish→ complete;  any ─a fault→ faulty
/// ```
package final class RequestText {
    /// Why a field section is no request.
    package enum Fault: Error, Equatable, Sendable {
        /// RFC 9113 §8.1.1: the stream is reset with PROTOCOL_ERROR.
        case malformed
        /// The section exceeds the limits of a head.
        case tooLarge
    }

    private enum Control: Int { case method, scheme, authority, path }

    /// The text of the head; complete once `finish` has returned.
    package let text = ByteBuffer(capacity: 1024)
    package let isSecure: Bool
    private let scheme: ByteSlice
    package let mostLines: Int
    package let mostBytes: Int
    private var count: FieldCount
    /// The values of the pseudo-header fields, until the request line is written.
    private let control = ByteBuffer(capacity: 256)
    private var ranges: [4 of Range<Int>] = [0..<0, 0..<0, 0..<0, 0..<0]
    private var known = 0
    private var hasLine = false
    private let cookie = ByteBuffer(capacity: 64)
    private var hasLength = false
    private var isTrailers = false

    /// - Parameters:
    ///   - isSecure: whether the connection's URLs are of https.
    ///   - mostLines: the most lines of a field section.
    ///   - mostBytes: the most bytes of one, as RFC 9113 §6.5.2 counts them.
    package init(isSecure: Bool, mostLines: Int, mostBytes: Int) {
        self.isSecure = isSecure
        scheme = isSecure ? ByteSlice("https") : ByteSlice("http")
        (self.mostLines, self.mostBytes) = (mostLines, mostBytes)
        count = FieldCount(mostLines: mostLines, mostBytes: mostBytes)
    }

    /// Begins another request.
    package func begin() {
        text.removeAll()
        control.removeAll()
        cookie.removeAll()
        count = FieldCount(mostLines: mostLines, mostBytes: mostBytes)
        ranges = [0..<0, 0..<0, 0..<0, 0..<0]
        (known, hasLine, hasLength, isTrailers) = (0, false, false, false)
    }

    /// Begins a section of trailers (RFC 9113 §8.1). Its text is the end of chunked content (RFC 9112 §7.1.2).
    package func beginTrailers() {
        begin()
        (hasLine, isTrailers) = (true, true)
        text.append("0\r\n")
    }

    // MARK: Lines

    /// Adds a line of the section, in its order.
    package func add(name: Span<UInt8>, value: Span<UInt8>) throws(Fault) {
        guard count.admit(name: name.count, value: value.count) else { throw .tooLarge }
        guard !name.isEmpty else { throw .malformed }
        if name[0] == UInt8(ascii: ":") { return try addControl(name, value) }
        guard name.firstIndexOutsideLowercaseToken(from: 0) == nil, Self.isValue(value) else { throw .malformed }
        if !hasLine { try writeStart() }
        switch name.count {
        case 2 where name.isEqual(to: "te"):
            // RFC 9113 §8.2.2.
            guard value.isEqual(to: "trailers") else { throw .malformed }
        case 4 where name.isEqual(to: "host") && !isTrailers:
            return try addHost(value)
        case 6 where name.isEqual(to: "cookie") && !isTrailers:
            // RFC 9113 §8.2.3.
            if !cookie.isEmpty { cookie.append("; ") }
            return cookie.append(value)
        case 7 where name.isEqual(to: "upgrade"), 10 where name.isEqual(to: "connection"),
            10 where name.isEqual(to: "keep-alive"), 16 where name.isEqual(to: "proxy-connection"),
            17 where name.isEqual(to: "transfer-encoding"):
            throw .malformed
        case 14 where name.isEqual(to: "content-length"):
            hasLength = true
        default: break
        }
        append(name, value)
    }

    /// Counts a line of a section that is too large already.
    /// - Returns: false if the section is several times too large.
    package func countsOn(name: Int, value: Int) -> Bool {
        _ = count.admit(name: name, value: value)
        return count.lines <= 4 * mostLines && count.bytes <= 4 * mostBytes
    }

    private func append(_ name: StaticString, _ value: Span<UInt8>) {
        text.append(name)
        text.append(": ")
        text.append(value)
        text.append("\r\n")
    }

    private func append(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        text.append(name)
        text.append(": ")
        text.append(value)
        text.append("\r\n")
    }

    private func addControl(_ name: Span<UInt8>, _ value: Span<UInt8>) throws(Fault) {
        let kind: Control
        switch name.count {
        case 5 where name.isEqual(to: ":path"): kind = .path
        case 7 where name.isEqual(to: ":method"): kind = .method
        case 7 where name.isEqual(to: ":scheme"): kind = .scheme
        case 10 where name.isEqual(to: ":authority"): kind = .authority
        default: throw .malformed
        }
        // RFC 9113 §8.3: before all other fields, each once.
        guard !hasLine, known & 1 << kind.rawValue == 0, Self.isControl(value) else { throw .malformed }
        known |= 1 << kind.rawValue
        ranges[kind.rawValue] = control.count..<control.count + value.count
        control.append(value)
    }

    private func has(_ kind: Control) -> Bool { known & 1 << kind.rawValue != 0 && !ranges[kind.rawValue].isEmpty }

    /// RFC 9113 §8.3.1: `Host` and `:authority` do not differ.
    private func addHost(_ value: Span<UInt8>) throws(Fault) {
        guard has(.authority) else {
            guard known & 1 << Control.authority.rawValue == 0, !value.isEmpty else { throw .malformed }
            known |= 1 << Control.authority.rawValue
            ranges[Control.authority.rawValue] = control.count..<control.count + value.count
            control.append(value)
            return append("host", value)
        }
        let control = control
        let authority = control.span.extracting(ranges[Control.authority.rawValue])
        guard authority.isEqualIgnoringCase(to: value) else { throw .malformed }
    }

    /// Writes the request line and `Host`.
    private func writeStart() throws(Fault) {
        hasLine = true
        guard has(.method) else { throw .malformed }
        let control = control
        let values = control.span
        let method = values.extracting(ranges[Control.method.rawValue])
        let authority = values.extracting(ranges[Control.authority.rawValue])
        text.append(method)
        text.append(" ")
        if method.isEqual(to: "CONNECT") {
            // RFC 9113 §8.5.
            guard has(.authority), !has(.path), !has(.scheme) else { throw .malformed }
            text.append(authority)
        } else {
            guard has(.path), has(.scheme) else { throw .malformed }
            let path = values.extracting(ranges[Control.path.rawValue])
            let own = values.extracting(ranges[Control.scheme.rawValue])
            let isOrigin = path[0] == UInt8(ascii: "/")
            guard isOrigin || path.count == 1 && path[0] == UInt8(ascii: "*") else { throw .malformed }
            // The parser, and the rules behind it, judge a scheme that is not the connection's.
            let scheme = scheme
            let isOwn = own.isEqualIgnoringCase(to: scheme.span)
            if isOrigin, !isOwn {
                guard has(.authority) else { throw .malformed }
                text.append(own)
                text.append("://")
                text.append(authority)
            }
            text.append(path)
        }
        text.append(" HTTP/1.1\r\n")
        if has(.authority) { append("host", authority) }
    }

    /// Ends the section.
    /// - Parameter hasContent: whether the stream goes on behind it.
    package func finish(hasContent: Bool) throws(Fault) {
        guard !isTrailers else { return text.append("\r\n") }
        if !hasLine { try writeStart() }
        // RFC 9113 §8.3.1: a request has an authority, since every request here would have one in HTTP/1.1.
        guard has(.authority) else { throw .malformed }
        let cookie = cookie
        if !cookie.isEmpty { append("cookie", cookie.span) }
        // Content whose length is not known.
        if hasContent, !hasLength { text.append("transfer-encoding: chunked\r\n") }
        text.append("\r\n")
    }

    // MARK: Syntax

    /// A space or a line break would end the part of the request line that the value becomes.
    private static func isControl(_ value: Span<UInt8>) -> Bool {
        // Mostly there is no such byte.
        if value.firstIndexOutsideTarget(from: 0) == nil { return true }
        for index in 0..<value.count where value[index] <= 0x20 || value[index] == 0x7F { return false }
        return true
    }

    /// RFC 9113 §8.2.1.
    private static func isValue(_ value: Span<UInt8>) -> Bool {
        guard !value.isEmpty else { return true }
        let (first, last) = (value[0], value[value.count - 1])
        if first == 0x20 || first == 0x09 || last == 0x20 || last == 0x09 { return false }
        // Mostly there is no such byte, and no control character at all.
        if value.firstIndexOutsideFieldValue(from: 0) == nil { return true }
        for index in 0..<value.count where value[index] == 0 || value[index] == 0x0A || value[index] == 0x0D {
            return false
        }
        return true
    }
}
