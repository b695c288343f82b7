import HTTPSemantics
import Libevent
import Routing

extension LoopContext {
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
