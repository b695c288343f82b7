import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage
import Telemetry

extension LoopContext {
    /// RFC 9110 §10.2.1.
    private static let allow: StaticString = "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n"

    /// A request whose `Via` or `CDN-Loop` has this proxy's name this often is in a loop. One occurrence does not prove
    /// a loop: proxies in a row may share the default name.
    static let visitsThatAreALoop = 4

    /// Refuses or answers some requests before any look-up, and finds the route of all others.
    /// - Parameters:
    ///   - fields: as they were sent; the request has them normalized.
    ///   - known: the route, if it was found on the hot path and `keys` still holds the request's key.
    ///   - peer: the other end of the client connection.
    ///   - security: of the client connection; `nil` in the clear.
    ///   - isBound: whether the client connection has connections to origins of its own (`BoundConnections`).
    /// - Throws: the response to a request that ends here.
    func admit(
        _ head: RequestHead, _ fields: HeadBlock, on known: Route?, from peer: SocketAddress, isFromTrustedProxy: Bool,
        over security: ClientSecurity?, isBound: Bool
    ) throws(SyntheticResponse) -> ClientRequest {
        let view = fields.view
        switch head.method {
        case .connect, .trace:
            // CONNECT is for forward proxies; TRACE would disclose the fields that this proxy adds (RFC 9110 §9.3.8).
            throw SyntheticResponse(.methodNotAllowed, "This method is not served here.", extraFields: Self.allow)
        case .get, .head, .post, .put, .delete, .options, .patch, .otherSafe, .otherIdempotent, .other:
            break
        }
        if head.expectation == .unknown {
            throw SyntheticResponse(.expectationFailed, "Only `Expect: 100-continue` is supported.")
        }
        let visits = loopSettings.loopDetection.visits(view)
        if visits >= Self.visitsThatAreALoop {
            throw SyntheticResponse(
                Status(508), "The request has come through here before: the upstream leads back to this proxy.")
        }
        if let security, !security.isFor(view.bytes.extracting(head.authority.range).hostPart) {
            throw SyntheticResponse(
                .misdirectedRequest, "The TLS handshake of this connection was for another host; open a new one.")
        }
        let scheme = ClientScheme(
            of: view, isFromTrustedProxy: isFromTrustedProxy && loopSettings.trustsProxies, isSecure: security != nil)
        let route = if let known { known } else { try findRoute(head, view, scheme, isSecure: security != nil) }
        // As on the hot path, which applies the access rules only to the hits that it answers.
        let fields = route.rules?.normalization?.head(of: view, length: head.length) ?? fields
        try obey(route, on: route, from: peer, isFromTrustedProxy: isFromTrustedProxy, fields)
        for other in loopSettings.routesOfOtherSpellings(head, view, scheme, besides: route) {
            try obey(other, on: route, from: peer, isFromTrustedProxy: isFromTrustedProxy, fields)
        }
        // `*` is about the server as a whole (RFC 9110 §9.3.7), which the route's answer is not.
        if let answer = route.rules?.ownAnswer, head.target.form != .asterisk {
            throw SyntheticResponse(
                answer, to: head, view, scheme, on: route, from: peer, isFromTrustedProxy: isFromTrustedProxy,
                in: self)
        }
        // RFC 9110 §7.6.2: with `Max-Forwards: 0` this proxy is the final recipient.
        if head.method == .options, view.maxForwards == 0 || route.rules?.ownAnswer != nil {
            throw SyntheticResponse(.ok, "This is a proxy.", extraFields: Self.allow, on: route)
        }
        if case .length(let length) = head.framing, let limit = settings.clients.maxBodySize, length > UInt64(limit) {
            throw SyntheticResponse.contentTooLarge.on(route)
        }
        if known == nil { keys.write(head, fields.view, scheme, route) }
        let request = ClientRequest(
            head, fields, route: route, scheme: scheme, key: keys.key(),
            visits: view.contains(.cdnLoop) ? try shared.tier.visits(visits, of: view, keys.bytes) : visits,
            isBound: isBound)
        return variations.isEmpty ? request : keyed(request)
    }

    /// Applies the access rules of `guarding` to a request on `route`. Counts and reports one that they refuse.
    private func obey(
        _ guarding: Route, on route: Route, from peer: SocketAddress, isFromTrustedProxy: Bool, _ fields: HeadBlock
    ) throws(SyntheticResponse) {
        guard let rules = guarding.rules?.access,
            let refusal = refusal(by: rules, of: peer, isTrustedProxy: isFromTrustedProxy, fields.view)
        else { return }
        metrics.add(refusal == .denied ? .deniedRequests : .limitedRequests)
        let client = recorder.trustedProxies.client(of: peer, isProxied: isFromTrustedProxy, fields.view)
        notices.refused(refusal, of: client, on: guarding)
        throw SyntheticResponse(refusal, by: rules, on: route)
    }

    private func findRoute(
        _ head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, isSecure: Bool
    ) throws(SyntheticResponse) -> Route {
        // RFC 9110 §7.4: a request for a resource of another scheme must not be answered with the http resource of the
        // same name.
        let target = head.target
        if target.form == .absolute {
            // A proxy that terminates TLS may write the scheme of the request it received, or of the request it sends.
            let name = fields.bytes.extracting(target.scheme.range)
            guard scheme.isNamed(name) || ClientScheme(isSecure: isSecure).isNamed(name) else {
                throw SyntheticResponse(.misdirectedRequest, "URLs of this scheme are not served here.")
            }
        }
        guard loopSettings.serves(fields.bytes.extracting(head.authority.range)) else {
            throw SyntheticResponse(.misdirectedRequest, "This host is not served here.")
        }
        return loopSettings.route(head, fields, scheme)
    }

    /// Whether `rules` refuse a request. Takes a token of its client if they do not.
    /// - Parameters:
    ///   - peer: the other end of the client connection.
    ///   - fields: of the request.
    @inline(never) // Two callers, of which one is rare.
    func refusal(by rules: AccessRules, of peer: SocketAddress, isTrustedProxy: Bool, _ fields: FieldView)
        -> AccessRules.Refusal?
    {
        let client = recorder.trustedProxies.client(of: peer, isProxied: isTrustedProxy, fields)
        return rules.refusal(of: client, fields, shared.limiter, hash: shared.keyHash, at: loop.now)
    }
}
