import Bytes
import HTTPSemantics
import Routing
import Storage

/// The head of a request, in the form used everywhere but on the hot path: copied out of its connection's buffer, with
/// the values derived from it by the settings and by the query rules known for its path.
///
/// Immutable, usable on any thread. Requests of one loop whose heads have the same bytes may share one object, whose
/// identity then stands for these bytes; the properties in which they differ are in `Arrival`.
final class ClientRequest: Sendable {
    let head: RequestHead
    let fields: HeadBlock
    let directives: RequestDirectives
    let route: Route
    /// The scheme in the cache key.
    let scheme: ClientScheme
    /// Whether the request goes past the cache because of one of its cookies (`Route.passCookies`).
    let hasPassCookie: Bool
    /// Whether the request has any cookies: after a reload one of them may be a pass cookie.
    let hasCookies: Bool
    /// Whether the request goes over a connection to the origin that belongs to its client connection
    /// (`BoundConnections`): the origin may know the user of that connection, or will, without any field that says so.
    /// The response is for this request alone.
    let isBound: Bool
    /// How often the request has already passed this proxy (`LoopDetection`).
    let visits: UInt8
    /// The key by which the request is looked up and its fetch is found: the key of its URL, or the key derived from
    /// that under a variation (No-Vary-Search).
    let key: CacheKey
    /// The key of the request's URL as sent, if it differs from `key`.
    private let otherSentKey: CacheKey?
    /// The latest variation of the path when `key` was chosen.
    let variation: SearchVariation?

    /// - Parameter isBound: whether the client connection has connections to origins of its own.
    init(
        _ head: RequestHead, _ fields: consuming HeadBlock, route: Route, scheme: ClientScheme = .http,
        key: consuming CacheKey, visits: Int, isBound: Bool = false
    ) {
        self.head = head
        self.scheme = scheme
        self.visits = UInt8(clamping: visits)
        directives = RequestDirectives(fields.view, ignoring: route.policy.ignoredRequestDirectives)
        hasPassCookie = route.hasPassCookie(fields.view)
        hasCookies = fields.present.contains(.cookie)
        // Credentials that hold for their connection (NTLM, Negotiate) bind the connection.
        self.isBound = isBound || fields.view.hasConnectionCredentials
        self.fields = fields
        self.route = route
        self.key = key
        otherSentKey = nil
        variation = nil
    }

    /// The request `other` with other fields, or under another key.
    private init(
        _ other: ClientRequest, fields: HeadBlock, key: CacheKey, otherSentKey: CacheKey?, variation: SearchVariation?
    ) {
        head = other.head
        directives = other.directives
        route = other.route
        scheme = other.scheme
        hasPassCookie = other.hasPassCookie
        hasCookies = other.hasCookies
        isBound = other.isBound
        visits = other.visits
        self.fields = fields
        self.key = key
        self.otherSentKey = otherSentKey
        self.variation = variation
    }

    /// This request under another key.
    func under(_ key: CacheKey, _ variation: SearchVariation?) -> ClientRequest {
        ClientRequest(
            self, fields: fields, key: key, otherSentKey: key == sentKey ? nil : sentKey, variation: variation)
    }

    /// This request as if its client had sent no `Authorization`. The key stays.
    var anonymous: ClientRequest {
        ClientRequest(
            self, fields: fields.without(FieldSet(.authorization)), key: key, otherSentKey: otherSentKey,
            variation: variation)
    }

    /// The key of the request's URL as sent.
    var sentKey: CacheKey { otherSentKey ?? key }
    /// Whether requests for other URLs may have the same key.
    var isUnderVariation: Bool { otherSentKey != nil }

    /// Whether `bytes` begin with this head, and so would be parsed as this head: a head marks its own end.
    func isBeginning(of bytes: Span<UInt8>) -> Bool {
        let head = fields.bytes
        return bytes.count >= head.count && head.span.isEqual(to: bytes.extracting(0..<head.count))
    }

    /// Whether a request with this head, from such a client, is for the same URL: the bytes are the same, but the
    /// connection, or a trusted proxy, states the scheme.
    func isForSameURL(isFromTrustedProxy: Bool, isSecure: Bool) -> Bool {
        let fields = fields
        return ClientScheme(of: fields.view, isFromTrustedProxy: isFromTrustedProxy, isSecure: isSecure) == scheme
    }

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
        guard head.version != .http10 else { return false }
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

    /// Whether the answer to this request may be that of another one (`SharedAnswer`).
    var mayShareAnswer: Bool {
        method == .get && fields.present.isDisjoint(with: .changingAnswer) && route.rules?.responseFields == nil
    }
    /// Whether an identifier must be made for the request: its client gave none that is valid. One bit test, and nearly
    /// always false.
    @inline(__always)
    var needsID: Bool {
        (route.makesRequestID || fields.present.contains(.xRequestID)) && hasNoID
    }

    private var hasNoID: Bool {
        let fields = fields
        return fields.view.requestID == nil
    }

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

/// The properties of one request in which it may differ from another with the same head.
struct Arrival: Sendable {
    /// When the request's head was complete.
    let time: Moment
    /// How many purges of tags there had been (`TagTable.generation`).
    let generation: UInt64
    /// The client's address as text, without the port. The path of a Unix socket may be any bytes.
    let peer: ByteSlice
    /// Whether that is an IP address.
    let hasAddress: Bool
    /// Whether the client is a proxy whose statements about its own client are trusted.
    let isFromTrustedProxy: Bool
    /// What the handshake of the client's connection has agreed on; `nil` in the clear.
    let security: ClientSecurity?
    /// The identifier that was made for the request, in place of one that the client did not give, or that is not
    /// valid; `none` if it needs none.
    let madeID: RequestID

    /// The client's IP address for `X-Forwarded-For`; empty if the client used a Unix socket.
    var clientAddress: ByteSlice { hasAddress ? peer : .empty }
}

extension ClientRequest {
    /// The fields of a response to the request, with its host in place of the names of its origin; `nil` if they have
    /// none.
    @inline(never) // Kept out of the code of routes without such names.
    func renamed(_ response: FieldView, _ names: OriginNames) -> HeadBlock? {
        let fields = fields
        return names.renamed(response, for: head, fields.view, scheme)
    }

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
