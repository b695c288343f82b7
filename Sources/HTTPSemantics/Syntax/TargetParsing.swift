import Bytes

extension RequestTarget {
    /// The target at `range`, which must not be empty; `nil` if the target is not valid for `method`.
    ///
    /// Only printable ASCII without `#` is accepted: a fragment is no part of a target (RFC 9112 §3.2), and a URI is
    /// ASCII (RFC 3986 §2). Within that, characters that browsers leave unencoded pass unchanged.
    init?(_ range: Range<Int>, in bytes: Span<UInt8>, for method: Method) {
        let text = bytes.extracting(range)
        guard !text.isEmpty, bytes.firstIndexOutsideTarget(from: range.lowerBound) ?? bytes.count >= range.upperBound
        else { return nil }
        whole = ByteRange(range)
        if method == .connect {
            // RFC 9112 §3.2.3: host and port, both present.
            guard let host = Authority(text), host.port != nil, host.host.count > 0 else { return nil }
            form = .authority
            authority = whole
        } else if text[0] == UInt8(ascii: "/") {
            form = .origin
            split(range, in: bytes)
        } else if text[0] == UInt8(ascii: "*") {
            guard text.count == 1, method == .options else { return nil }
            form = .asterisk
        } else {
            form = .absolute
            guard parseAbsolute(range, in: bytes) else { return nil }
        }
    }

    /// A target that begins with `/` and holds only bytes allowed in a target; the caller has checked both.
    @inline(__always)
    init(originForm range: Range<Int>, in bytes: Span<UInt8>) {
        whole = ByteRange(range)
        split(range, in: bytes)
    }

    /// `scheme "://" authority path [ "?" query ]` (RFC 9112 §3.2.2). The caller decides which schemes are served, so
    /// any token is accepted as the scheme.
    private mutating func parseAbsolute(_ range: Range<Int>, in bytes: Span<UInt8>) -> Bool {
        let text = bytes.extracting(range)
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), text.extracting(0..<colon).isTokenOnly,
            text.holds("://", at: colon)
        else { return false }
        let start = range.lowerBound + colon + 3
        var end = start
        while end < range.upperBound, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end += 1 }
        // An empty host is invalid (RFC 9110 §4.2.1), user information an error (§4.2.4).
        guard let host = Authority(bytes.extracting(start..<end)), host.host.count > 0 else { return false }
        authority = ByteRange(start..<end)
        split(end..<range.upperBound, in: bytes)
        return true
    }

    private mutating func split(_ range: Range<Int>, in bytes: Span<UInt8>) {
        guard let mark = bytes.extracting(range).firstIndex(of: UInt8(ascii: "?")) else {
            path = ByteRange(range)
            return
        }
        path = ByteRange(range.lowerBound..<range.lowerBound + mark)
        query = ByteRange(range.lowerBound + mark + 1..<range.upperBound)
        hasQuery = true
    }
}
