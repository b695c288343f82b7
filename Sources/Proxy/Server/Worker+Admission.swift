import Bytes
import HTTPSemantics

extension Worker {
    enum Admission {
        case admitted(ClientRequest)
        /// Answered by ourselves; `extra` are further field lines.
        case refused(Status, StaticString, extra: StaticString)
    }

    /// How often our name may stand in a request's `Via` or `CDN-Loop` before it is a loop: a few, because proxies in a row
    /// may bear the same name when nobody gave them others.
    static let maxPasses = 4

    /// What is refused before anything is looked up, and where the rest goes.
    func admit(_ head: RequestHead, _ fields: HeadBlock, from client: ByteSlice) -> Admission {
        let view = fields.view
        switch head.method {
        case .connect, .trace:
            // CONNECT is for forward proxies; TRACE would show what we added (RFC 9110 §9.3.8).
            return .refused(
                .methodNotAllowed, "This method is not served here.", extra: "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n")
        case .options where view.maxForwards == 0:
            // RFC 9110 §7.6.2: then we are the final recipient.
            return .refused(Status(200), "This is a proxy.", extra: "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n")
        case .get, .head, .post, .put, .delete, .options, .patch, .other:
            break
        }
        if head.expectation == .unknown {
            return .refused(.expectationFailed, "The only expectation that is met here is 100-continue.", extra: "")
        }
        if runtime.loopDetection.passes(view) >= Self.maxPasses {
            return .refused(Status(508), "The request has come through here before: the upstream leads back to this proxy.", extra: "")
        }
        let authority = view.bytes.extracting(head.authority.range)
        guard runtime.serves(authority) else {
            return .refused(.misdirectedRequest, "This host is not served here.", extra: "")
        }
        guard let route = runtime.route(head, view) else {
            return .refused(.notFound, "No route leads from this host and path.", extra: "")
        }
        if case .length(let length) = head.framing, let limit = settings.clients.maxBodySize, length > UInt64(limit) {
            return .refused(.contentTooLarge, "The request's content is larger than is taken here.", extra: "")
        }
        keys.write(head, view, route)
        return .admitted(keyed(
            ClientRequest(head: head, fields: fields, route: route, key: keys.key(), arrived: moment, client: client)))
    }
}

extension FieldView {
    /// `Max-Forwards` as a number (RFC 9110 §7.6.2); `nil` if there is none or it is no number.
    var maxForwards: Int? {
        guard count(of: .maxForwards) == 1, let index = firstIndex(of: .maxForwards) else { return nil }
        let digits = value(at: index)
        guard !digits.isEmpty, digits.count < 10 else { return nil }
        var number = 0
        for index in 0..<digits.count {
            guard digits[index] &- 0x30 < 10 else { return nil }
            number = number * 10 + Int(digits[index] &- 0x30)
        }
        return number
    }
}
