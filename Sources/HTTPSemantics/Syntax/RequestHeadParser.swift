import Bytes

/// Parses request heads, strictly and a line at a time (RFC 9112 §2, §3, §5). Does not allocate once its memory has
/// grown.
///
///     startLine ─request line→ fields ─empty line→ complete
///
/// One per connection, on its loop; `reset` between requests. After an error only `reset` may be called.
public struct RequestHeadParser: ~Copyable, Sendable {
    private enum Phase { case startLine, fields, complete }

    private var phase = Phase.startLine
    private var emptyLines = 0
    private var section: FieldSectionParser
    private let limits: HeadLimits
    /// The first byte of a TLS connection: the type of the record that carries the ClientHello.
    private static let handshake: UInt8 = 0x16
    /// Valid once `parse` returned `complete`.
    public private(set) var head = RequestHead()

    /// - Parameter limits: a head beyond them is an error that names the limit.
    public init(limits: HeadLimits) {
        self.limits = limits
        section = FieldSectionParser(maxLines: limits.maxFieldLines, reserving: HeadLimits.usualFieldLines)
    }

    /// Prepares for the next head; memory is kept.
    public mutating func reset() {
        phase = .startLine
        emptyLines = 0
        section.reset()
    }

    /// The fields read so far. `bytes` must be the bytes last given to `parse`.
    @_lifetime(copy bytes, borrow self)
    public func view(in bytes: Span<UInt8>) -> FieldView {
        FieldView(bytes: bytes, lines: section.lines, present: section.present)
    }

    /// Continues reading. `bytes` start with the head's first byte; each call gives the same bytes and perhaps more.
    /// - Throws: the first error in the head, with its position. Only `reset` may be called then.
    public mutating func parse(_ bytes: Span<UInt8>) throws(MessageSyntaxError) -> HeadProgress {
        while true {
            switch phase {
            case .startLine:
                if takeUsualLine(bytes) {
                    phase = .fields
                    continue
                }
                guard let line = try startLine(bytes) else { return .incomplete }
                if line.isEmpty {
                    emptyLines += 1
                    guard emptyLines <= HeadLimits.maxLeadingEmptyLines
                    else { throw MessageSyntaxError(.tooManyEmptyLines, at: line.lowerBound) }
                } else {
                    try parseRequestLine(line, bytes)
                    phase = .fields
                }
            case .fields:
                while section.addWholeLine(in: bytes, limit: limits.maxHeadBytes) {}
                guard let line = try section.nextLine(in: bytes, limit: limits.maxHeadBytes, excess: .headTooLarge)
                else { return .incomplete }
                if line.isEmpty {
                    try finish(bytes)
                    phase = .complete
                } else {
                    try section.addLine(line, in: bytes)
                }
            case .complete:
                return .complete(headLength: head.length)
            }
        }
    }

    /// Whether `bytes`, a head that may be malformed, are a HEAD request, to which no response has content (RFC 9110
    /// §9.3.2).
    public static func isHEAD(_ bytes: Span<UInt8>) -> Bool {
        var start = 0
        while start < bytes.count, bytes[start] == 0x0d || bytes[start] == 0x0a { start += 1 }
        return bytes.holds("HEAD ", at: start)
    }

    /// Parses a request line that has arrived completely and has the usual form, `GET /path HTTP/1.1`, in one step: it
    /// scans the target once. Returns false and changes no state for any other line: `startLine` and `parseRequestLine`
    /// then parse it or find the error.
    @inline(__always)
    private mutating func takeUsualLine(_ bytes: Span<UInt8>) -> Bool {
        let start = section.lineStart
        guard section.isAtLineStart, bytes.holds("GET /", at: start) else { return false }
        let targetStart = start &+ 4
        guard let end = bytes.firstIndexOutsideTarget(from: targetStart), end &- targetStart <= limits.maxTargetLength,
            end &+ 11 <= limits.maxHeadBytes, bytes.holds(" HTTP/1.1\r\n", at: end)
        else { return false }
        head.version = .http11
        head.method = .get
        head.methodRange = ByteRange(start..<start &+ 3)
        head.target = RequestTarget(originForm: targetStart..<end, in: bytes)
        section.take(lineEndingAt: end &+ 11)
        return true
    }

    private mutating func startLine(_ bytes: Span<UInt8>) throws(MessageSyntaxError) -> Range<Int>? {
        let start = section.lineStart
        // The first byte distinguishes a request from a TLS ClientHello and the like, which may never contain a line
        // feed.
        if start < bytes.count, !bytes[start].isToken, bytes[start] != 0x0d, bytes[start] != 0x0a {
            throw MessageSyntaxError(bytes[start] == Self.handshake ? .tlsHello : .malformedRequestLine, at: start)
        }
        // Method, two spaces, `HTTP/1.1` and CR LF around the longest target.
        let limit = start + HeadLimits.maxMethodLength + limits.maxTargetLength + 12
        return limit < limits.maxHeadBytes
            ? try section.nextLine(in: bytes, limit: limit, excess: .targetTooLong)
            : try section.nextLine(in: bytes, limit: limits.maxHeadBytes, excess: .headTooLarge)
    }

    /// `method SP request-target SP HTTP-version` (RFC 9112 §3).
    private mutating func parseRequestLine(_ line: Range<Int>, _ bytes: Span<UInt8>) throws(MessageSyntaxError) {
        let start = line.lowerBound
        if bytes.holds("PROXY TCP", at: start) || bytes.holds("PROXY UNKNOWN", at: start) {
            throw MessageSyntaxError(.proxyProtocol, at: start)
        }
        var methodEnd = start
        while methodEnd < line.upperBound, bytes[methodEnd].isToken { methodEnd &+= 1 }
        let versionStart = line.upperBound - 8
        guard methodEnd > start, methodEnd < line.upperBound, bytes[methodEnd] == 0x20,
            versionStart - 2 > methodEnd, bytes[versionStart - 1] == 0x20
        else { throw MessageSyntaxError(.malformedRequestLine, at: methodEnd) }
        head.version = try HTTPVersion(bytes, at: versionStart)
        guard methodEnd - start <= HeadLimits.maxMethodLength
        else { throw MessageSyntaxError(.methodTooLong, at: start) }
        head.methodRange = ByteRange(start..<methodEnd)
        head.method = Method.recognise(bytes.extracting(start..<methodEnd))
        let target = (methodEnd + 1)..<(versionStart - 1)
        guard target.count <= limits.maxTargetLength else {
            throw MessageSyntaxError(.targetTooLong, at: target.lowerBound)
        }
        guard let parsed = RequestTarget(target, in: bytes, for: head.method)
        else { throw MessageSyntaxError(.targetInvalid, at: target.lowerBound) }
        head.target = parsed
    }

    /// Computes the parts of `head` that depend on the whole head.
    private mutating func finish(_ bytes: Span<UInt8>) throws(MessageSyntaxError) {
        let (authority, host) = try Self.authority(head, view(in: bytes))
        let connection = try ConnectionOptions(view(in: bytes))
        let declared = try DeclaredFraming(view(in: bytes), head.version, allowingEqualLengths: false)
        head.expectation = Self.expectation(head.version, view(in: bytes))
        head.asksForUpgrade = section.present.contains(.upgrade) && takesUpgrade(head.version, connection, bytes)
        head.authority = authority
        head.host = host
        head.connection = connection
        // RFC 9112 §6.3, 4, 6 and 7.
        head.framing = declared.isChunked ? .chunked : declared.length.map { .length($0) } ?? .none
        head.length = section.lineStart
    }

    /// Whether `Upgrade` is an offer to this proxy. RFC 9110 §7.8: not in HTTP/1.0, nor unless `Connection` nominates
    /// it. An ignored `Upgrade` counts as absent, so that the request is handled like one without it.
    private mutating func takesUpgrade(_ version: HTTPVersion, _ connection: ConnectionOptions, _ bytes: Span<UInt8>)
        -> Bool
    {
        let isTaken = version == .http11 && connection.upgrade && view(in: bytes).offersTunnel
        if !isTaken { section.ignore(.upgrade) }
        return isTaken
    }

    /// RFC 9112 §3.2: 400 for a missing Host in HTTP/1.1, and for a repeated or an invalid one. §3.2.2: an absolute
    /// target's authority replaces `Host`.
    private static func authority(
        _ head: RequestHead, _ fields: FieldView
    ) throws(MessageSyntaxError) -> (ByteRange, Authority?) {
        let ofTarget = head.target.authority
        guard let line = fields.firstIndex(of: .host) else {
            if head.version == .http11 { throw MessageSyntaxError(.hostMissing, at: 0) }
            return (ofTarget, Authority(fields.bytes.extracting(ofTarget.range)))
        }
        let position = Int(fields.lines[line].name.lower)
        if let second = fields.firstIndex(of: .host, from: line + 1) {
            throw MessageSyntaxError(.hostRepeated, at: Int(fields.lines[second].name.lower))
        }
        guard let host = Authority(fields.value(at: line)) else { throw MessageSyntaxError(.hostInvalid, at: position) }
        switch head.target.form {
        case .absolute, .authority:
            return (ofTarget, Authority(fields.bytes.extracting(ofTarget.range)))
        case .origin, .asterisk:
            // An empty host names no resource of this server, and RFC 9112 §3.3 permits rejecting it.
            if head.version == .http11,
                fields.lines[line].value.count == 0 || fields.value(at: line)[0] == UInt8(ascii: ":")
            {
                throw MessageSyntaxError(.hostInvalid, at: position)
            }
            return (fields.lines[line].value, host)
        }
    }

    private static func expectation(_ version: HTTPVersion, _ fields: FieldView) -> Expectation {
        // RFC 9110 §10.1.1: ignored in HTTP/1.0.
        guard version == .http11, let line = fields.firstIndex(of: .expect) else { return .none }
        let isAlone = fields.firstIndex(of: .expect, from: line + 1) == nil
        return isAlone && fields.value(at: line).isEqualIgnoringCase(to: "100-continue") ? .continue : .unknown
    }
}

extension HTTPVersion {
    /// `"HTTP/" DIGIT "." DIGIT` in the eight bytes at `start` (RFC 9112 §2.3).
    init(_ bytes: Span<UInt8>, at start: Int) throws(MessageSyntaxError) {
        let text = bytes.extracting(start..<(start + 8))
        if text.isEqual(to: "HTTP/1.1") { self = .http11; return }
        let major = text[5] &- 0x30
        let minor = text[7] &- 0x30
        guard text.hasPrefix("HTTP/"), major < 10, text[6] == UInt8(ascii: "."), minor < 10
        else { throw MessageSyntaxError(.versionInvalid, at: start) }
        guard major == 1 else { throw MessageSyntaxError(.versionNotSupported, at: start) }
        self = minor == 0 ? .http10 : .http11
    }
}

extension FieldView {
    /// Whether `Upgrade` offers protocols (RFC 9110 §7.8) of which none carries requests. Requests in a tunnel would be
    /// neither routed nor checked.
    fileprivate var offersTunnel: Bool {
        var protocols = ListIterator(self, .upgrade)
        var isOffer = false
        while let member = protocols.next() {
            let end = member.firstIndex(of: UInt8(ascii: "/")) ?? member.count
            let name = member.extracting(0..<end)
            guard name.isTokenOnly, end == member.count || member.extracting(end + 1..<member.count).isTokenOnly,
                !name.carriesRequests
            else { return false }
            isOffer = true
        }
        return isOffer
    }
}

extension Span where Element == UInt8 {
    /// Whether the protocol of this name carries requests: HTTP/2 (RFC 7540 §3.2, deprecated by RFC 9113 §3.1), any
    /// HTTP, and HTTP within TLS (RFC 2817).
    fileprivate var carriesRequests: Bool {
        isEqualIgnoringCase(to: "h2c") || isEqualIgnoringCase(to: "h2") || isEqualIgnoringCase(to: "http")
            || isEqualIgnoringCase(to: "tls")
    }
}
