import Bytes
import HTTPSemantics
import Libevent
import Storage

extension Worker {
    /// An unsafe request succeeded (RFC 9111 §4.4): what is stored for its target, and for the targets of the same origin that its
    /// response names, is used no more; nor is what is on its way for them shared or stored as if it came afterwards.
    func invalidate(_ request: ClientRequest, answeredBy response: FieldView, status: Status) {
        let groups = CacheGroups.invalidated(by: response, method: request.method, status: status)
        if !groups.isEmpty { shared.groups.invalidate(groups, of: request.authority, at: loop.now) }
        invalidate(request.sentKey, at: request.route.origin)
        let (fields, target) = (request.fields, request.head.target)
        let pathAndQuery = ByteBuffer(capacity: 128)
        pathAndQuery.append(fields.bytes.span.extracting(target.path.range))
        if target.hasQuery {
            pathAndQuery.append(UInt8(ascii: "?"))
            pathAndQuery.append(fields.bytes.span.extracting(target.query.range))
        }
        let authority = ByteSlice(copying: fields.bytes.span.extracting(request.head.authority.range))
        let base = TargetURI(isSecure: false, authority: authority, pathAndQuery: pathAndQuery.copied())
        for related in Invalidation.relatedTargets(of: response, base: base) {
            guard let url = ParsedURL("http://\(String(authority))\(String(related))"), let route = runtime.route(url.head, url.fields.view)
            else { continue }
            url.write(to: keys, route.key)
            invalidate(keys.key(), at: route.origin)
        }
    }

    /// - Parameter key: as sent. First: whoever learns a variation afterwards finds the key invalidated (`Fetch.place`).
    private func invalidate(_ key: CacheKey, at origin: Origin) {
        shared.store.invalidate(key)
        origin.closeFetches(of: key)
        let sent = key.bytes
        for variation in shared.variations.all(for: sent.span) {
            let key = keys.key(key, under: variation)
            shared.store.invalidate(key)
            origin.closeFetches(of: key)
        }
    }
}
