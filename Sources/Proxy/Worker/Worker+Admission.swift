import Bytes
import HTTPSemantics
import Storage

extension Worker {
    /// Answered by ourselves; `extra` are further field lines.
    struct Refusal: Error {
        let status: Status
        let explanation: StaticString
        let extra: StaticString

        init(_ status: Status, _ explanation: StaticString, extra: StaticString = "") {
            self.status = status
            self.explanation = explanation
            self.extra = extra
        }

        /// RFC 9110 §10.2.1.
        fileprivate static let allow: StaticString = "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n"

        static let contentTooLarge = Refusal(.contentTooLarge, "The request's content is too large.")
    }

    /// A request whose `Via` or `CDN-Loop` has our name this often runs in a loop. Not at the first: proxies in a row may share the
    /// default name.
    static let passesThatAreALoop = 4

    /// What is refused before anything is looked up, and where the rest goes.
    /// - Parameter known: the route, where it was found on the hot path and `keys` still holds the request's key.
    func admit(
        _ head: RequestHead, _ fields: HeadBlock, on known: Route?, from client: ByteSlice
    ) throws(Refusal) -> ClientRequest {
        let view = fields.view
        switch head.method {
        case .connect, .trace:
            // CONNECT is for forward proxies; TRACE would show what we added (RFC 9110 §9.3.8).
            throw Refusal(.methodNotAllowed, "This method is not served here.", extra: Refusal.allow)
        case .options where view.maxForwards == 0:
            // RFC 9110 §7.6.2: then we are the final recipient.
            throw Refusal(Status(200), "This is a proxy.", extra: Refusal.allow)
        case .get, .head, .post, .put, .delete, .options, .patch, .other:
            break
        }
        if head.expectation == .unknown {
            throw Refusal(.expectationFailed, "Only `Expect: 100-continue` is supported.")
        }
        let passes = loopSettings.loopDetection.passes(view)
        if passes >= Self.passesThatAreALoop {
            throw Refusal(Status(508), "The request has come through here before: the upstream leads back to this proxy.")
        }
        let route = if let known { known } else { try findRoute(head, view) }
        if case .length(let length) = head.framing, let limit = settings.clients.maxBodySize, length > UInt64(limit) {
            throw Refusal.contentTooLarge
        }
        if known == nil { keys.write(head, view, route) }
        let request = ClientRequest(AdmittedHead(head, fields, route: route, key: keys.key(), passes: passes), arrived: moment, client: client)
        return variations.isEmpty ? request : keyed(request)
    }

    private func findRoute(_ head: RequestHead, _ fields: FieldView) throws(Refusal) -> Route {
        // RFC 9110 §7.4: a request for another scheme's resource must not be answered with ours of the same name.
        let target = head.target
        guard target.form != .absolute || fields.bytes.extracting(target.scheme.range).isEqualIgnoringCase(to: ClientScheme.ofClients.name) else {
            throw Refusal(.misdirectedRequest, "Only http URLs are served here.")
        }
        guard loopSettings.serves(fields.bytes.extracting(head.authority.range)) else {
            throw Refusal(.misdirectedRequest, "This host is not served here.")
        }
        return loopSettings.route(head, fields)
    }
}
