import Coalescing
import HTTPSemantics
import Storage

extension Worker {
    /// Fetches anew what is served stale, for nobody in particular (RFC 5861 §3): it neither delays nor dies with the request.
    /// - Parameter resource: what was seen at look-up. Where it is another by now, somebody refreshed or forgot it.
    func refresh(_ stored: StoredResponse, _ resource: CachedResource?, for request: ClientRequest) {
        let fields = request.fields
        let variant = resource?.knownVary.first.map { VariantKey(fields.view, under: $0) }
        let plan = FetchPlan(
            key: FetchKey(kind: request.hasAuthorization ? .authorizedGet : .get, primary: request.key, variant: variant),
            reason: .stale, stored: stored, resource: resource, isTransparent: false, isRefresh: true)
        let store = shared.store
        _ = fetches(of: request).enqueue(
            plan.key, waiter: nil as Waiter<FetchedResponse>?, priority: .background,
            unless: { () -> Void? in store.resource(request.key) == resource ? nil : () },
            make: { makeFetch(request, plan, client: nil) })
    }
}
