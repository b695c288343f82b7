import HTTPSemantics
import Storage

/// What is to be done for one request, told from what is stored. No clock.
enum Lookup: Sendable {
    /// Answer with the stored response. `refreshes`: and fetch it anew in the background, if nobody does so yet.
    case serve(StoredResponse, Reuse, refreshes: Bool)
    /// Join or lead the fetch of the plan's key.
    case fetch(FetchPlan)
    /// The client wants nothing that is not stored (RFC 9111 §5.2.1.7).
    case notStored

    /// - Parameters:
    ///   - resource: what is known under the request's primary key.
    ///   - usesParts: whether ranges may be asked for in the name of others too. Not after that was in vain.
    ///   - alone: the number of a fetch for this request alone, should it need one.
    ///   - groups: which cache groups were invalidated.
    init(
        _ request: ClientRequest, resource: CachedResource?, groups: GroupInvalidations, at now: Moment, isCoalescing: Bool,
        usesParts: Bool = true, alone: @autoclosure () -> UInt64
    ) {
        let fields = request.fields
        let scope = RequestScope(fields.view, method: request.method, hasContent: request.hasContent)
        if case .pass(let reason) = scope {
            self = Self.alone(request, alone(), reason)
            return
        }
        // What is stored from before a reload is as if it were not where the route is no longer cached.
        let stored = request.route.isCached ? resource?.response(matching: fields.view) : nil
        let selected = stored.map { Self.counted($0, groups, for: request) }
        var doubt = ValidationReason.stale
        if let selected {
            switch selected.facts.reuse(for: request.directives, at: now) {
            case .fresh(let age, let ttl):
                self = .serve(selected, .fresh(age: age, ttl: ttl), refreshes: false)
                return
            case .staleAccepted(let age):
                self = .serve(selected, .staleAccepted(age: age), refreshes: false)
                return
            case .staleWhileRevalidate(let age):
                self = .serve(selected, .staleWhileRevalidate(age: age), refreshes: true)
                return
            case .validate(let reason):
                doubt = reason
            }
        }
        if selected == nil, usesParts,
           let found = Self.parts(request, resource, groups, at: now, isCoalescing: isCoalescing, alone: alone()) {
            self = found
            return
        }
        if request.directives.onlyIfCached {
            self = .notStored
            return
        }
        self = .fetch(Self.plan(
            request, resource, stored, fallback: selected, doubt, at: now, isCoalescing: isCoalescing, usesParts: usesParts, alone: alone()))
    }

    /// What only the origin can answer; which `only-if-cached` does not want, whatever else it asks for (§5.2.1.7).
    @inline(never) // Rare: kept out of the way of what looks something up.
    private static func alone(_ request: ClientRequest, _ number: UInt64, _ reason: NotCoalescedReason) -> Lookup {
        if reason == .method { return .fetch(pass(request, number, .method)) }
        return request.directives.onlyIfCached ? .notStored : .fetch(pass(request, number, .bypass))
    }

    /// A fetch whose request and answer pass through as they are.
    /// - Parameter fallback: what is stored and may stand in should the origin fail.
    private static func pass(
        _ request: ClientRequest, _ number: UInt64, _ reason: ForwardReason, fallback: StoredResponse? = nil
    ) -> FetchPlan {
        FetchPlan(
            key: FetchKey(kind: .alone(number), primary: request.key, variant: nil), reason: reason, resource: nil, .pass, fallback: fallback)
    }

    /// `stored` as it counts: to be validated where one of its groups was invalidated. What is stored itself goes by its identity, and stays as it is.
    private static func counted(_ stored: StoredResponse, _ groups: GroupInvalidations, for request: ClientRequest) -> StoredResponse {
        stored.groups != nil && groups.haveInvalidated(stored, of: request.authority) ? stored.invalidated : stored
    }

    /// - Parameter doubt: why `selected`, if there is one, must be validated.
    private static func plan(
        _ request: ClientRequest, _ resource: CachedResource?, _ selected: StoredResponse?, fallback: StoredResponse?, _ doubt: ValidationReason,
        at now: Moment,
        isCoalescing: Bool, usesParts: Bool, alone: @autoclosure () -> UInt64
    ) -> FetchPlan {
        if request.directives.noStore { return pass(request, alone(), .request) }
        let marker = resource?.unshareable(at: now, hasAuthorization: request.hasAuthorization)
        if selected == nil, usesParts, isCoalescing, marker == .range || (marker == nil && request.route.policy.asksForParts),
           request.route.isCached {
            let fields = request.fields
            if let range = RangeRequest.only(fields.view, method: request.method), request.route.policy.maxRanges > 0 {
                return part(request, resource, range, (resource?.count ?? 0) > 0 ? .varyMiss : .uriMiss)
            }
        }
        if let marker, selected == nil || marker != .noCache { return pass(request, alone(), .bypass, fallback: fallback) }

        let usable = request.route.isCached ? resource : nil
        let reason: ForwardReason = if selected != nil {
            ForwardReason(doubt)
        } else {
            (usable?.count ?? 0) > 0 ? .varyMiss : .uriMiss
        }
        // RFC 9111 §5.2.2.4: `no-cache` asks for a validation by each request; they are made at the same time.
        let mustValidateItself = selected?.facts.contains(.noCache) ?? false
        let kind: FetchKey.Kind = if !isCoalescing || marker != nil || mustValidateItself {
            .alone(alone())
        } else if request.method == .head {
            .head
        } else {
            request.hasAuthorization ? .authorizedGet : .get
        }
        let fields = request.fields
        let variant = resource?.knownVary.first.map { VariantKey(fields.view, under: $0) }
        return FetchPlan(
            key: FetchKey(kind: kind, primary: request.key, variant: variant), reason: reason, resource: usable, .whole(validating: selected),
            fallback: fallback)
    }

    // MARK: - Parts

    /// What is to be done where parts of the variant are stored; `nil`: as if they were not.
    private static func parts(
        _ request: ClientRequest, _ resource: CachedResource?, _ groups: GroupInvalidations, at now: Moment, isCoalescing: Bool,
        alone: @autoclosure () -> UInt64
    ) -> Lookup? {
        let fields = request.fields
        guard request.method == .get, request.route.isCached, !request.directives.noStore,
              let stored = resource?.partial(matching: fields.view) else { return nil }
        let marker = resource?.unshareable(at: now, hasAuthorization: request.hasAuthorization)
        guard marker == nil || marker == .range else { return nil }
        let fallback = counted(stored, groups, for: request)
        let doubt: ValidationReason
        switch stored.use(for: request) {
        case .nothing:
            return nil
        case .needs(let range):
            if request.directives.onlyIfCached { return .notStored }
            return .fetch(part(request, resource, range, .partial, parts: stored, alone: isCoalescing ? nil : alone()))
        case .answers:
            switch fallback.facts.reuse(for: request.directives, at: now) {
            case .fresh(let age, let ttl):
                return .serve(stored, .fresh(age: age, ttl: ttl), refreshes: false)
            case .staleAccepted(let age):
                return .serve(stored, .staleAccepted(age: age), refreshes: false)
            case .staleWhileRevalidate:
                // What is refreshed in the background is the whole; parts are validated as they are wanted.
                doubt = .stale
            case .validate(let reason):
                doubt = reason
            }
        }
        guard let range = RangeRequest(fields.view, method: .get)?.specs, range.count == 1 else { return nil }
        if request.directives.onlyIfCached { return .notStored }
        return .fetch(part(
            request, resource, range[0], ForwardReason(doubt), parts: stored, validates: true, fallback: fallback,
            alone: isCoalescing ? nil : alone()))
    }

    /// - Parameters:
    ///   - validates: whether `parts` have all that is asked for, and are only to be validated.
    ///   - alone: the number of a fetch for this request only.
    private static func part(
        _ request: ClientRequest, _ resource: CachedResource?, _ range: ByteRangeSpec, _ reason: ForwardReason,
        parts: StoredResponse? = nil, validates: Bool = false, fallback: StoredResponse? = nil, alone: UInt64? = nil
    ) -> FetchPlan {
        let fields = request.fields
        let kind: FetchKey.Kind = alone.map { .alone($0) } ?? .part(range, isAuthorized: request.hasAuthorization)
        let variant = resource?.knownVary.first.map { VariantKey(fields.view, under: $0) }
        return FetchPlan(
            key: FetchKey(kind: kind, primary: request.key, variant: variant), reason: reason, resource: resource,
            .part(range, of: parts, validates: validates), fallback: fallback)
    }
}
