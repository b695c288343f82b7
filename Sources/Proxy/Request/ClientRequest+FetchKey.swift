import HTTPSemantics
import Routing
import Storage

extension ClientRequest {
    /// The key of a fetch for this request. Not an initializer, which would retain its arguments.
    /// - Parameters:
    ///   - resource: the stored responses and notes under the request's key.
    ///   - separates: whether requests that do not match have different keys.
    func fetchKey(_ kind: FetchKey.Kind, knowing resource: CachedResource?, separates: Bool = false) -> FetchKey {
        let rule = resource?.knownVary.first
        // Requests without distinguishing fields keep the plain key, so that they can still join a fetch begun before
        // the separation was known.
        if separates, kind != .unshared, let variant = ownVariant(under: rule ?? .none) {
            return FetchKey(kind, key, variant, visits: visits)
        }
        let variant = rule.map { rule in
            let fields = fields
            return VariantKey(fields.view, under: rule)
        }
        return FetchKey(kind, key, variant, visits: visits)
    }

    /// The variant that the request looks under where requests that do not match do not share; `nil` if it has no
    /// distinguishing fields.
    func ownVariant(under rule: VaryRule) -> VariantKey? {
        let fields = fields
        return VariantKey(fields.view, under: rule, tellingApartBy: route.policy)
    }

    /// Whether an origin whose responses say nothing of reuse gives this request the same response as the request with
    /// `other`, as far as the fields tell.
    func matchesForSharing(_ other: ClientRequest) -> Bool {
        // Requests with the same bytes may share one object.
        if self === other { return true }
        let (own, others) = (fields, other.fields)
        return route.policy.matchForSharing(own.view, others.view)
    }

    /// Whether the request may get a response that no other request gets, if the response does not tell: because of its
    /// cookies, its credentials, or fields that most visitors of a page do not share.
    var isPersonal: Bool { hasAuthorization || isPersonalized }

    /// Whether the request has fields, such as cookies, that most visitors of a page do not share.
    var isPersonalized: Bool {
        if hasCookies { return true }
        let fields = fields
        return route.policy.isPersonalized(fields.view)
    }
}
