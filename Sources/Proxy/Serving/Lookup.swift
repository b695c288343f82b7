import HTTPSemantics
import Storage

/// Decides from what is stored what to do for one request. Pure.
struct Lookup {
    enum Outcome: Sendable {
        /// Answer with the stored response. `refreshes`: and fetch it anew in the background, if nobody does so yet.
        case serve(StoredResponse, Reuse, refreshes: Bool)
        /// Join or lead the fetch of the plan's key.
        case fetch(FetchPlan)
        /// The client wants nothing that is not stored (RFC 9111 §5.2.1.7).
        case notStored
    }

    /// For whom a fetch may be.
    enum Company: Sendable {
        /// For all who ask for the same, as far as the response allows.
        case shared
        /// Coalescing is off: for the request alone.
        case coalescingOff
        /// For the request alone, since a shared one was no use or took too long; and for no range on behalf of others.
        case alone
    }

    let request: ClientRequest
    /// What is known under the request's primary key.
    let resource: CachedResource?
    let groups: GroupInvalidations
    let now: Moment
    let company: Company

    var outcome: Outcome {
        let fields = request.fields
        if case .pass(let reason) = RequestScope(fields.view, method: request.method, hasContent: request.hasContent) {
            return passed(because: reason)
        }
        // After a reload the route may be cached no longer: then what is still stored does not count.
        let stored = request.route.isCached ? resource?.response(matching: fields.view) : nil
        let selected = stored.map { counted($0) }
        var doubt = ValidationReason.stale
        if let selected {
            let reuse = selected.facts.reuse(for: request.directives, at: now)
            switch reuse {
            case .fresh, .staleAccepted: return .serve(selected, reuse, refreshes: false)
            case .staleWhileRevalidate: return .serve(selected, reuse, refreshes: true)
            case .validate(let reason): doubt = reason
            }
        }
        let marker = resource?.unshareable(at: now, hasAuthorization: request.hasAuthorization)
        if selected == nil, company != .alone, let found = parts(marker) { return found }
        return request.directives.onlyIfCached ? .notStored : .fetch(plan(for: stored, fallback: selected, doubt, marker))
    }

    /// `stored`, marked as to be validated if one of its groups was invalidated. The store knows the original by its identity: that stays as it is.
    private func counted(_ stored: StoredResponse) -> StoredResponse {
        stored.groups != nil && groups.haveInvalidated(stored, of: request.authority) ? stored.invalidated : stored
    }

    // MARK: - What is passed

    /// Only the origin can answer it. `only-if-cached` rules that out, whatever else the request says (§5.2.1.7).
    @inline(never) // Rare: kept out of the way of what looks something up.
    private func passed(because reason: ForwardReason) -> Outcome {
        reason != .method && request.directives.onlyIfCached ? .notStored : .fetch(pass(reason))
    }

    /// A fetch whose request and answer pass through as they are.
    /// - Parameter fallback: what is stored and may stand in should the origin fail.
    private func pass(_ reason: ForwardReason, fallback: StoredResponse? = nil) -> FetchPlan {
        FetchPlan(
            key: FetchKey(kind: .alone, primary: request.key, variant: nil, passes: request.passes), reason: reason, resource: nil, .pass, fallback: fallback)
    }

    // MARK: - What is fetched

    /// - Parameter doubt: why `selected`, if there is one, must be validated.
    private func plan(
        for selected: StoredResponse?, fallback: StoredResponse?, _ doubt: ValidationReason, _ marker: NotSharedReason?
    ) -> FetchPlan {
        if request.directives.noStore { return pass(.request) }
        if selected == nil, company == .shared, marker == .range || (marker == nil && request.route.asksForParts),
           request.route.isCached {
            let fields = request.fields
            if let range = RangeRequest.only(fields.view, method: request.method), request.route.maxRanges > 0 {
                return part(range, missReason(resource), of: nil)
            }
        }
        if let marker, selected == nil || marker != .noCache { return pass(.bypass, fallback: fallback) }
        let usable = request.route.isCached ? resource : nil
        // RFC 9111 §5.2.2.4: `no-cache` asks for a validation by each request; they are made at the same time.
        let mustValidateItself = selected?.facts.contains(.noCache) ?? false
        let kind: FetchKey.Kind = if company != .shared || marker != nil || mustValidateItself {
            .alone
        } else if request.method == .head {
            .head
        } else {
            request.hasAuthorization ? .authorizedGet : .get
        }
        return FetchPlan(
            key: key(kind), reason: selected == nil ? missReason(usable) : ForwardReason(doubt), resource: usable, .whole(validating: selected),
            fallback: fallback)
    }

    private func missReason(_ resource: CachedResource?) -> ForwardReason { (resource?.count ?? 0) > 0 ? .varyMiss : .uriMiss }

    private func key(_ kind: FetchKey.Kind) -> FetchKey {
        let fields = request.fields
        let variant = resource?.knownVary.first.map { VariantKey(fields.view, under: $0) }
        return FetchKey(kind: kind, primary: request.key, variant: variant, passes: request.passes)
    }

    // MARK: - Parts

    /// What to do if parts of the variant are stored; `nil`: the same as if they were not.
    private func parts(_ marker: NotSharedReason?) -> Outcome? {
        guard marker == nil || marker == .range, request.method == .get, request.route.isCached, !request.directives.noStore else { return nil }
        let fields = request.fields
        guard let stored = resource?.partial(matching: fields.view) else { return nil }
        let fallback = counted(stored)
        let doubt: ValidationReason
        switch stored.use(for: request) {
        case .nothing:
            return nil
        case .needs(let range):
            return request.directives.onlyIfCached ? .notStored : .fetch(part(range, .partial, of: stored))
        case .answers:
            let reuse = fallback.facts.reuse(for: request.directives, at: now)
            switch reuse {
            case .fresh, .staleAccepted:
                return .serve(stored, reuse, refreshes: false)
            case .staleWhileRevalidate:
                // What is refreshed in the background is the whole; parts are validated as they are wanted.
                doubt = .stale
            case .validate(let reason):
                doubt = reason
            }
        }
        guard let range = RangeRequest(fields.view, method: .get)?.specs, range.count == 1 else { return nil }
        return request.directives.onlyIfCached
            ? .notStored : .fetch(part(range[0], ForwardReason(doubt), of: stored, validates: true, fallback: fallback))
    }

    /// - Parameter validates: whether `stored` has all that is asked for, and is only to be validated.
    private func part(
        _ range: ByteRangeSpec, _ reason: ForwardReason, of stored: StoredResponse?, validates: Bool = false, fallback: StoredResponse? = nil
    ) -> FetchPlan {
        let kind: FetchKey.Kind = company == .shared ? .part(range, isAuthorized: request.hasAuthorization) : .alone
        return FetchPlan(
            key: key(kind), reason: reason, resource: resource, .part(range, of: stored, validates: validates), fallback: fallback)
    }
}
