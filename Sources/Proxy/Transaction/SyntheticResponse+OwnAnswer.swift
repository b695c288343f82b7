import Bytes
import HTTPSemantics
import Libevent
import Routing

extension SyntheticResponse {
    /// The answer of the route to one request.
    init(
        _ answer: OwnAnswer, to head: RequestHead, _ fields: FieldView, _ scheme: ClientScheme, on route: Route,
        from peer: SocketAddress, isFromTrustedProxy: Bool, in context: LoopContext
    ) {
        var client = ByteSlice.empty
        if answer.namesClient {
            let address = context.recorder.trustedProxies.client(of: peer, isProxied: isFromTrustedProxy, fields)
            client = address.map { ByteSlice("\($0)") } ?? peer.hostText
        }
        let madeID = answer.usesRequestID ? context.requestIDs.next() : .none
        let parts = RequestParts(head, fields, scheme, client: client.span, madeID: madeID)
        self.init(answer, answer.fieldLines(for: parts), on: route, madeID: madeID)
    }
}
