import Bytes
import HTTPSemantics
import Routing
import Storage

extension LoopContext {
    /// Invalidates stored responses after a successful unsafe request (RFC 9111 §4.4): responses for its target, and
    /// for the targets of the same origin that its response names. Where the route's key has fields or cookies, only
    /// the key with the request's own values is invalidated: finding the others is a walk through the whole store, as a
    /// purge makes it, and one tenant's POST need not cost the others their pages.
    /// - Parameter own: the request's own fetch, whose response may be stored.
    func invalidate(
        _ request: ClientRequest, answeredBy response: FieldView, status: Status, except own: FetchOperation?
    ) {
        let groups = CacheGroups.invalidated(by: response, method: request.method, status: status)
        if !groups.isEmpty {
            shared.groups.invalidate(groups, of: request.authority, at: now)
            for origin in shared.origins { origin.closeFetches(outdatedBy: shared.groups, of: request.authority) }
        }
        shared.invalidate(request.sentKey, using: keys, keepsNotes: true, except: own)
        let base = request.targetURI
        for related in Invalidation.relatedTargets(of: response, base: base) {
            guard let url = ParsedURL("\(request.scheme.name)://\(String(base.authority))\(String(related))") else {
                continue
            }
            let (fields, urlFields) = (request.fields, url.fields)
            let route = loopSettings.route(url.head, urlFields.view)
            url.write(to: keys, route.key, as: fields.view)
            shared.invalidate(keys.key(), using: keys, keepsNotes: true, except: own)
        }
    }
}
