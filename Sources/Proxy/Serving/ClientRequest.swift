import Bytes
import HTTPSemantics
import Storage

/// One request, in the form used everywhere but on the hot path. Immutable, usable on any thread. Its identity stands
/// for the client that sent it: a response may be for that client alone.
final class ClientRequest: Sendable {
    /// The sender of the request, as far as an origin is told.
    struct Sender: Sendable {
        let address: ByteSlice
        let isTrustedProxy: Bool
        /// Whether the client connection has connections to origins of its own (`BoundConnections`).
        var isBound = false
    }

    /// The request's own head, or the head of its crowd.
    let sharedHead: SharedHead
    private let sender: Sender
    /// When the request's head was complete.
    let arrived: Moment

    init(sharing head: SharedHead, arrived: Moment, from sender: Sender) {
        sharedHead = head
        self.arrived = arrived
        self.sender = sender
    }

    init(_ admitted: consuming AdmittedHead, arrived: Moment, from sender: Sender) {
        sharedHead = SharedHead(admitted)
        self.arrived = arrived
        self.sender = sender
    }

    /// This request with another head.
    private func with(_ admitted: consuming AdmittedHead) -> ClientRequest {
        ClientRequest(admitted, arrived: arrived, from: sender)
    }

    /// This request under another key.
    func under(_ key: CacheKey, _ variation: SearchVariation?) -> ClientRequest { with(admitted.under(key, variation)) }

    /// This request as if its client had sent no `Authorization`.
    var anonymous: ClientRequest { with(admitted.without(FieldSet(.authorization))) }

    /// The client's IP address as text, without the port, for `X-Forwarded-For`; empty if the client used a Unix
    /// socket.
    var clientAddress: ByteSlice { sender.address }
    /// Whether the request came from a proxy whose statements about the client are trusted.
    var isFromTrustedProxy: Bool { sender.isTrustedProxy }

    /// Whether the request goes over a connection to the origin that belongs to its client connection: the origin may
    /// know the user of that connection, or will, without any field that says so. The response is for this request
    /// alone.
    var isBound: Bool { sender.isBound || admitted.hasConnectionCredentials }

    var admitted: AdmittedHead { sharedHead.value }
    var head: RequestHead { admitted.head }
    var fields: HeadBlock { admitted.fields }
    var directives: RequestDirectives { admitted.directives }
    var route: Route { admitted.route }
    var scheme: ClientScheme { admitted.scheme }
    var hasPassCookie: Bool { admitted.hasPassCookie }
    var hasCookies: Bool { admitted.hasCookies }
    var visits: UInt8 { admitted.visits }
    var key: CacheKey { admitted.key }
    var sentKey: CacheKey { admitted.sentKey }
    var variation: SearchVariation? { admitted.variation }
    var isUnderVariation: Bool { admitted.isUnderVariation }

    var method: Method { head.method }
    var hasContent: Bool {
        switch head.framing {
        case .none, .length(0): false
        case .length, .chunked, .untilClose: true
        }
    }
    /// Whether the client waits for 100 before it sends content. Any other `Expect` is not forwarded (RFC 9110
    /// §10.1.1).
    var awaitsContinue: Bool { hasContent && head.expectation == .continue }
    /// Method, host and target, for the diagnostics log.
    var summary: String {
        let bytes = fields.bytes
        return "\(String(bytes[head.methodRange.range])) \(authority) \(String(bytes[head.target.whole.range]))"
    }

    /// The host and port of the target, in the form that the key has. Too slow for the hot path.
    var authority: String {
        let fields = fields
        let buffer = ByteBuffer(capacity: 64)
        buffer.appendKeyHost(fields.bytes.span.extracting(head.authority.range), defaultPort: scheme.defaultPort)
        return String(buffer.span)
    }

    /// How many more times the request may be forwarded, if it is an OPTIONS with `Max-Forwards` (RFC 9110 §7.6.2); at
    /// least 1 once admitted.
    var maxForwards: Int? {
        guard method == .options else { return nil }
        let fields = fields
        return fields.view.maxForwards
    }

    /// Whether the client accepts trailers (RFC 9110 §10.1.4).
    var acceptsTrailers: Bool {
        guard head.version == .http11 else { return false }
        let fields = fields
        return fields.view.saysTrailers
    }
    /// Whether the request has conditions or a range, or asks to switch protocols.
    var isConditional: Bool { !fields.present.isDisjoint(with: .conditions.union(FieldSet(.upgrade))) }
    /// Whether a 304 can answer the request as it came. Some APIs answer 304 to an unsafe request that changed nothing.
    var mayBeNotModified: Bool {
        guard method == .get || method == .head else { return true }
        let fields = fields
        return ClientConditions.apply(to: fields.view)
    }
    /// Whether a field of the request names another method than its request line.
    var namesMethod: Bool {
        let fields = fields
        return KeyedForwarding.namesMethod(fields.view)
    }
    var hasAuthorization: Bool { fields.present.contains(.authorization) }

    /// The facts about the request that the cache rules use.
    /// - Parameters:
    ///   - method: the method that the origin was sent, or that the stored response answers.
    ///   - hasPassCookie: whether the request goes past the cache because of a cookie, possibly by newer settings.
    func facts(asking method: Method, hasPassCookie: Bool) -> RequestFacts {
        RequestFacts(
            method: method, directives: directives, hasAuthorization: hasAuthorization, hasPassCookie: hasPassCookie,
            isBound: isBound)
    }
}

extension ClientRequest {
    /// The target URI. Too slow for the hot path.
    var targetURI: TargetURI {
        let (fields, target) = (fields, head.target)
        let pathAndQuery = ByteBuffer(capacity: 128)
        pathAndQuery.append(fields.bytes.span.extracting(target.path.range))
        if target.hasQuery {
            pathAndQuery.append(UInt8(ascii: "?"))
            pathAndQuery.append(fields.bytes.span.extracting(target.query.range))
        }
        let authority = ByteSlice(copying: fields.bytes.span.extracting(head.authority.range))
        return TargetURI(isSecure: scheme.isSecure, authority: authority, pathAndQuery: pathAndQuery.copied())
    }
}
