import Bytes
import HTTPSemantics
import Storage

/// One request, as everything but the hot path sees it. Immutable, free to go to any thread. Its identity stands for
/// the client that asked: a response may be for that one alone.
final class ClientRequest: Sendable {
    /// Who sent it, as far as an origin is told.
    struct Sender: Sendable {
        let address: ByteSlice
        let isTrustedProxy: Bool
        /// Whether its connection has connections to origins of its own (`BoundConnections`).
        var isBound = false
    }

    /// The request's own head, or that of the crowd that it is one of.
    let sharedHead: SharedHead
    private let sender: Sender
    /// When its head was complete.
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

    /// The client's IP address as text, without the port, for `X-Forwarded-For`; empty if it came by a Unix socket.
    var clientAddress: ByteSlice { sender.address }
    /// Whether it came from a proxy whose word on the client counts.
    var isFromTrustedProxy: Bool { sender.isTrustedProxy }

    /// Whether it goes over a connection to the origin that is its client connection's own: its user may be known there,
    /// or will be, and no field need say so. What it brings is for it alone.
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
    /// Whether its client waits for 100 before it sends content. Any other `Expect` goes no further (RFC 9110 §10.1.1).
    var awaitsContinue: Bool { hasContent && head.expectation == .continue }
    /// Method, host and target, for the diagnostics log.
    var summary: String {
        let bytes = fields.bytes
        return "\(String(bytes[head.methodRange.range])) \(authority) \(String(bytes[head.target.whole.range]))"
    }

    /// The host and port that were asked for, as the key has them. Not for the hot path.
    var authority: String {
        let fields = fields
        let buffer = ByteBuffer(capacity: 64)
        buffer.appendKeyHost(fields.bytes.span.extracting(head.authority.range), defaultPort: scheme.defaultPort)
        return String(buffer.span)
    }

    /// How many more times the request may be forwarded, where it is OPTIONS and says so (RFC 9110 §7.6.2); at least 1
    /// once admitted.
    var maxForwards: Int? {
        guard method == .options else { return nil }
        let fields = fields
        return fields.view.maxForwards
    }

    /// Whether the client takes trailers (RFC 9110 §10.1.4).
    var acceptsTrailers: Bool {
        guard head.version == .http11 else { return false }
        let fields = fields
        return fields.view.saysTrailers
    }
    /// Whether it asks for something only under conditions, or for a part, or to switch protocols.
    var isConditional: Bool { !fields.present.isDisjoint(with: .conditions.union(FieldSet(.upgrade))) }
    /// Whether a 304 answers it as it came. Some APIs answer an unsafe request so that changed nothing.
    var mayBeNotModified: Bool {
        guard method == .get || method == .head else { return true }
        let fields = fields
        return ClientConditions.apply(to: fields.view)
    }
    /// Whether a field of it names another method than its first line.
    var namesMethod: Bool {
        let fields = fields
        return KeyedForwarding.namesMethod(fields.view)
    }
    var hasAuthorization: Bool { fields.present.contains(.authorization) }

    /// What the cache rules look at in it.
    /// - Parameters:
    ///   - method: that the origin was asked with, or that what is stored answers.
    ///   - hasPassCookie: whether it was to go past the cache: settings may have come since that say so.
    func facts(asking method: Method, hasPassCookie: Bool) -> RequestFacts {
        RequestFacts(
            method: method, directives: directives, hasAuthorization: hasAuthorization, hasPassCookie: hasPassCookie,
            isBound: isBound)
    }
}

extension ClientRequest {
    /// What was asked for, as a URI. Not for the hot path.
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
