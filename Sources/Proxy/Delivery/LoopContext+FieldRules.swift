import Bytes
import HTTPSemantics
import Libevent
import Routing
import Telemetry
import Upstream

/// The last step of `response-headers`, when the head of a response is complete: at the end of a buffer, with its empty
/// line.
extension LoopContext {
    /// The fields in which this proxy states its own content: its plain text, or a file.
    private static let ownFields = FieldSet(.contentType)

    /// Applies the rules that are written per response, to a response for a request that has its route.
    /// - Parameters:
    ///   - start: where the head begins in `buffer`.
    ///   - isMadeHere: whether the response is not an origin's: then no rule has been applied to it before.
    @inline(never) // Kept out of the code of responses without rules.
    func applyRules(
        toHeadFrom start: Int = 0, in buffer: ByteBuffer, status: Status, _ verdict: Verdict,
        for request: ClientRequest,
        from arrival: Arrival, isMadeHere: Bool = false, omitting omitted: FieldSet = []
    ) {
        let (fields, peer) = (request.fields, arrival.peer)
        let client = loopSettings.client(peer.span, isTrusted: arrival.isFromTrustedProxy, in: fields.view)
        let parts = RequestParts(
            request.head, fields.view, request.scheme, client: client, madeID: arrival.madeID, status: status,
            cache: verdict.name)
        var omitted = omitted.union(.omitted(from: status))
        if isMadeHere {
            omitted.formUnion(Self.ownFields)
            request.route.storedFields?.applyConstants(
                toHeadFrom: start, in: buffer, status: status, omitting: omitted)
        }
        request.route.rules?.responseFields?.apply(toHeadFrom: start, in: buffer, parts, omitting: omitted)
    }

    /// Applies the rules that are written per response to the head of `answer`.
    func applyRules(
        in buffer: ByteBuffer, to answer: borrowing Answer, _ provenance: Provenance, for request: ClientRequest,
        from arrival: Arrival
    ) {
        applyRules(
            in: buffer, status: answer.status, provenance.verdict, for: request, from: arrival,
            omitting: answer.ownFields)
    }

    /// The 101 that the client gets, and the bytes that followed it.
    func switching(by head: borrowing ReceivedHead, for request: ClientRequest, from arrival: Arrival) -> ByteBuffer {
        let buffer = head.upgrade()
        applyRules(in: buffer, status: .switchingProtocols, .pass, for: request, from: arrival, isMadeHere: true)
        if let content = head.content { buffer.append(content) }
        return buffer
    }

    /// Applies all rules to a response made here for a request that never became a `ClientRequest`.
    /// - Parameters:
    ///   - route: `nil`: only the rules of the top without variables apply.
    ///   - head: the request's head; `nil` if it is malformed or incomplete.
    ///   - peer: the client's address as text.
    ///   - isSecure: whether the client speaks TLS.
    ///   - madeID: the identifier that was made for the request before.
    /// - Returns: the identifier that was made for the request; `none` if none was.
    func applyRules(
        toOwnHeadIn buffer: ByteBuffer, status: Status, _ verdict: Verdict, on route: Route?, to head: RequestHead?,
        _ fields: HeadBlock?, peer: ByteSlice, isFromTrustedProxy: Bool, isSecure: Bool, madeID: RequestID
    ) -> RequestID {
        guard let route, let head, let fields else {
            loopSettings.unroutedFields?.applyConstants(
                toHeadFrom: 0, in: buffer, status: status, omitting: Self.ownFields)
            return madeID
        }
        // No rule leads a redirect elsewhere, or lets caches keep one that was made of the request.
        let redirect = status.isRedirection ? route.rules?.ownAnswer : nil
        let own = redirect?.isRedirect == true ? Self.ownFields | .location : Self.ownFields
        route.storedFields?.applyConstants(toHeadFrom: 0, in: buffer, status: status, omitting: own)
        guard let rules = route.rules?.responseFields else { return madeID }
        let madeID = madeID.isNone && rules.usesRequestID ? requestIDs.next() : madeID
        let isTrusted = isFromTrustedProxy && loopSettings.trustsProxies
        let view = fields.view
        let parts = RequestParts(
            head, view, ClientScheme(of: view, isFromTrustedProxy: isTrusted, isSecure: isSecure),
            client: loopSettings.client(peer.span, isTrusted: isFromTrustedProxy, in: view), madeID: madeID,
            status: status, cache: verdict.name)
        rules.apply(
            toHeadFrom: 0, in: buffer, parts, omitting: own, leavesCaching: redirect?.forbidsStoring ?? false)
        return madeID
    }
}
