/// The four forms of a request target (RFC 9112 §3.2).
public enum TargetForm: Sendable, BitwiseCopyable {
    case origin, absolute, authority, asterisk
}

/// A request target and its parts, as ranges of the head's bytes.
public struct RequestTarget: Sendable, BitwiseCopyable {
    /// The target's form (RFC 9112 §3.2).
    public internal(set) var form = TargetForm.origin
    /// The whole target, as it was sent.
    public internal(set) var whole = ByteRange(0..<0)
    /// The authority of the absolute and the authority form; otherwise empty.
    public internal(set) var authority = ByteRange(0..<0)
    /// The path of the origin and the absolute form. In the absolute form it may be empty, which means `/`.
    public internal(set) var path = ByteRange(0..<0)
    /// The query without the `?`.
    public internal(set) var query = ByteRange(0..<0)
    public internal(set) var hasQuery = false

    /// The scheme of the absolute form; otherwise empty.
    public var scheme: ByteRange {
        form == .absolute ? ByteRange(Int(whole.lower)..<Int(authority.lower) - "://".utf8.count) : ByteRange(0..<0)
    }
}

/// The expectation in `Expect` (RFC 9110 §10.1.1).
public enum Expectation: Sendable, BitwiseCopyable {
    case none
    /// The client waits for 100 before it sends the body.
    case `continue`
    /// May be answered with 417.
    case unknown
}

/// The control data and framing of a request, computed once when its head is complete. A value: with a `HeadBlock` it
/// outlives the parser.
public struct RequestHead: Sendable {
    /// The request's method; its name stands at `methodRange`.
    public internal(set) var method = Method.other
    public internal(set) var methodRange = ByteRange(0..<0)
    /// The ranges of the target's parts.
    public internal(set) var target = RequestTarget()
    /// The client's version.
    public internal(set) var version = HTTPVersion.http11
    /// The authority that counts: the absolute target's (RFC 9112 §3.2.2), that of CONNECT's target, otherwise `Host`.
    /// Empty in HTTP/1.0 only.
    public internal(set) var authority = ByteRange(0..<0)
    /// The parts of `authority`, with offsets from its start.
    public internal(set) var host: Authority?
    public var framing = MessageFraming.none
    public internal(set) var connection = ConnectionOptions()
    public internal(set) var expectation = Expectation.none
    /// Whether the client asks to switch protocols: HTTP/1.1 with `Upgrade`, nominated by `Connection` (RFC 9110 §7.8).
    /// False for a protocol that carries requests.
    public internal(set) var asksForUpgrade = false
    /// Bytes of the head.
    public internal(set) var length = 0

    /// The head of a request that came in another version, as `RequestText` has written it.
    public func over(_ version: HTTPVersion) -> RequestHead {
        var head = self
        head.version = version
        return head
    }

    /// Whether the client's request lets the connection persist (RFC 9112 §9.3).
    public var keepsAlive: Bool { connection.persists(version) }
}
