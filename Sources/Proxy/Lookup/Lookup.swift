import HTTPSemantics
import Routing
import Storage

/// Decides how to answer one request, from the stored responses. Pure. Not copied, which would retain all that it has.
struct Lookup: ~Copyable {
    enum Outcome: Sendable {
        /// Answer with the stored response. `refreshes`: whether to refresh it in the background, if no refresh is
        /// under way.
        case serve(StoredResponse, Reuse, refreshes: Bool)
        /// Join or lead the fetch of the plan's key.
        case fetch(FetchPlan)
        /// The client wants only a stored response, and there is none (RFC 9111 §5.2.1.7).
        case notStored
    }

    /// The requests that a fetch may be for.
    enum FetchSharing: Sendable {
        /// A fetch for all requests with the same key, as far as the response allows.
        case shared
        /// A fetch for the request alone: coalescing is off.
        case coalescingOff
        /// A fetch for the request alone: shared ones did not serve it, or brought an error that is not shared. Parts
        /// are not requested then.
        case givenUp
    }

    let request: ClientRequest
    /// The stored responses and notes under the request's primary key.
    let resource: CachedResource?
    let now: Moment
    let sharing: FetchSharing

    var outcome: Outcome {
        let fields = request.fields
        if case .pass(let reason) = RequestScope(
            fields.view, method: request.method, hasContent: request.hasContent, hasPassCookie: request.hasPassCookie,
            isBound: request.isBound)
        {
            return passed(because: reason)
        }
        // No response is stored and none is shared: the request's conditions and its range are for the origin.
        if sharing != .shared, !request.route.isCached { return passed(because: .bypass) }
        // After a reload the route may no longer be cached: then the responses that are still stored do not count.
        let stored = request.route.isCached ? resource?.response(matching: fields.view) : nil
        var doubt = ValidationReason.stale
        if let stored {
            let reuse = stored.facts.reuse(for: request.directives, at: now)
            switch reuse {
            case .fresh, .staleAccepted: return .serve(stored, reuse, refreshes: false)
            // With its own cookies or fields the request might get another page.
            case .staleWhileRevalidate where requiresMatchingRequests(stored) && request.isPersonal: break
            // A request that forbids storing its response would refresh nothing.
            case .staleWhileRevalidate: return .serve(stored, reuse, refreshes: !request.directives.noStore)
            case .validate(let reason): doubt = reason
            }
        }
        let advice = resource?.advice(at: now, hasAuthorization: request.hasAuthorization) ?? .share
        if stored == nil, sharing != .givenUp, resource?.hasParts == true, let outcome = outcomeOfParts(advice) {
            return outcome
        }
        return request.directives.onlyIfCached
            ? .notStored : .fetch(plan(validating: stored, because: doubt, advice))
    }

    // MARK: - Stand-ins

    /// The stored response to send in place of a response that the origin fails to give. Looked up at the failure, not
    /// when the fetch began: meanwhile a newer response may have been stored (RFC 9111 §4), or a response may have
    /// forbidden to use the stored one stale, or at all (§4.3.3, §4.4).
    func standIn(on failure: OriginFailure) -> StoredResponse? {
        guard request.route.isCached else { return nil }
        return answering.first { stored in
            let facts = stored.facts
            if case .fresh = facts.reuse(for: request.directives, at: now) { return true }
            return facts.mayServeStale(on: failure, for: request.directives, at: now, policy: request.route.policy)
        }
    }

    /// The stored responses, whole or of parts, that have all that the request asks for; the first usable one is used.
    private var answering: [StoredResponse] {
        let fields = request.fields
        if let whole = resource?.response(matching: fields.view) {
            guard whole.precedence == .byCoding else { return [whole] }
            // Beside the encoded response, the unencoded ones, which every client can read.
            return [whole] + (resource?.responses(matching: fields.view).filter { $0.precedence != .byCoding } ?? [])
        }
        guard let parts = resource?.partial(matching: fields.view), case .answers = parts.use(for: request) else {
            return []
        }
        return [parts]
    }

    // MARK: - Passes

    /// Passes the request, which only the origin can answer. `only-if-cached` forbids that (§5.2.1.7), and takes
    /// precedence over all other directives.
    @inline(never) // Rare: kept out of the code of a look-up.
    private func passed(because reason: ForwardReason) -> Outcome {
        reason != .method && request.directives.onlyIfCached ? .notStored : .fetch(passPlan(reason))
    }

    /// A fetch whose request and response pass through as they are.
    /// - Parameter hasStandIn: whether a stored response may stand in if the origin fails.
    private func passPlan(_ reason: ForwardReason, hasStandIn: Bool = false) -> FetchPlan {
        FetchPlan(
            request: request, key: request.fetchKey(.unshared, knowing: nil), reason: reason, purpose: .pass,
            hasStandIn: hasStandIn)
    }

    // MARK: - Fetches

    /// - Parameters:
    ///   - stored: the response to validate, as the store knows it.
    ///   - doubt: why it must be validated.
    private func plan(
        validating stored: StoredResponse?, because doubt: ValidationReason, _ advice: KeyMarkers.Advice
    ) -> FetchPlan {
        if request.directives.noStore { return passPlan(.request) }
        // That the whole is too large to keep concerns only requests that want a part of it.
        let advice = advice == .askForPart && !wantsPart ? .share : advice
        if stored == nil, sharing != .givenUp,
            advice == .askForPart || (advice == .share && request.route.asksForParts),
            request.route.isCached
        {
            let fields = request.fields
            if let range = RangeRequest.only(fields.view, method: request.method) {
                return partPlan(range, missReason(resource), of: nil)
            }
        }
        let passes =
            switch advice {
            case .share: false
            case .validateAlone: stored == nil
            case .askForPart, .pass: true
            }
        if passes { return passPlan(.bypass, hasStandIn: stored != nil) }
        let known = request.route.isCached ? resource : nil
        // RFC 9111 §5.2.2.2, §5.2.2.4: each request needs a validation of its own; they are made at the same time.
        let mustValidateItself = stored?.facts.requiresValidationPerRequest ?? false
        let kind: FetchKey.Kind =
            if sharing != .shared || advice != .share || mustValidateItself {
                .unshared
            } else if request.method == .head {
                .head(isAuthorized: request.hasAuthorization)
            } else {
                .get(isAuthorized: request.hasAuthorization)
            }
        return FetchPlan(
            request: request, key: request.fetchKey(kind, knowing: resource, separates: usesOwnFetchKey(stored)),
            reason: stored == nil ? missReason(known) : ForwardReason(doubt), purpose: .whole, resource: known,
            former: stored, validates: stored != nil, hasStandIn: stored != nil)
    }

    /// Whether the request wants a part. If the operator allows no ranges, all requests get the whole.
    private var wantsPart: Bool {
        request.method == .get && request.fields.present.contains(.range) && request.route.maxRanges > 0
    }

    /// Whether the request shares fetches, from the beginning, only with requests that match. If only a stored response
    /// is a reason for that, most visitors of a page need not: a request that does not match theirs is released when
    /// the response is there.
    /// - Parameter stored: the response stored for the request.
    private func usesOwnFetchKey(_ stored: StoredResponse?) -> Bool {
        isMarkedAsSeparating || (stored?.facts.contains(.separatesRequests) == true && request.isPersonalized)
    }

    /// Whether a fetched response goes only to requests that match, as far as is known.
    private func requiresMatchingRequests(_ stored: StoredResponse) -> Bool {
        isMarkedAsSeparating || stored.facts.contains(.separatesRequests)
    }

    private var isMarkedAsSeparating: Bool { resource?.separatesRequests(at: now) == true }

    /// The plan of a refresh in the background.
    /// - Parameter resource: the stored responses and notes under the request's key.
    static func refreshPlan(of stored: StoredResponse, in resource: CachedResource?, for request: ClientRequest)
        -> FetchPlan
    {
        FetchPlan(
            request: request,
            key: request.fetchKey(.get(isAuthorized: request.hasAuthorization), knowing: resource), reason: .stale,
            purpose: .refresh, resource: resource, former: stored, validates: true, hasStandIn: true)
    }

    /// Why the request is forwarded, if no response to it is stored.
    private func missReason(_ resource: CachedResource?) -> ForwardReason {
        (resource?.count ?? 0) > 0 ? .varyMiss : request.route.missReason
    }

    // MARK: - Parts

    /// The outcome if parts of the variant are stored; `nil`: the same as if they were not.
    ///
    /// | wanted bytes | the client gets | the origin is asked for |
    /// | --- | --- | --- |
    /// | all stored and fresh | 206, or 416 | nothing |
    /// | all stored, but stale | the same, after a 304 | the range, with the validators, if any |
    /// | some missing, under a strong tag | stored and arriving bytes, in order | the missing range, `If-Range` |
    /// | some missing, without one | as if no part were stored | the range, or the whole |
    /// | several ranges, some missing | as if no part were stored | the whole |
    @inline(never) // Rare: kept out of the code of a look-up.
    private func outcomeOfParts(_ advice: KeyMarkers.Advice) -> Outcome? {
        guard let resource, request.method == .get, request.route.isCached, !request.directives.noStore else {
            return nil
        }
        let fields = request.fields
        guard let stored = resource.partial(matching: fields.view) else { return nil }
        // Fresh stored parts are used in spite of a later marker, but a marker against sharing forbids a fetch of
        // further parts.
        let mayAsk =
            switch advice {
            case .share, .askForPart: true
            case .validateAlone, .pass: false
            }
        let doubt: ValidationReason
        switch stored.use(for: request) {
        case .nothing:
            return nil
        case .needs(let range):
            // Without a strong tag no part can be combined with the stored ones (RFC 9111 §3.4): it would replace them.
            guard mayAsk, stored.facts.contains(.hasStrongETag) else { return nil }
            return request.directives.onlyIfCached ? .notStored : .fetch(partPlan(range, .partial, of: stored))
        case .answers:
            let reuse = stored.facts.reuse(for: request.directives, at: now)
            switch reuse {
            case .fresh, .staleAccepted:
                return .serve(stored, reuse, refreshes: false)
            case .staleWhileRevalidate:
                // A refresh in the background fetches the whole; parts are validated when a request wants them.
                doubt = .stale
            case .validate(let reason):
                doubt = reason
            }
        }
        guard mayAsk, let range = RangeRequest(fields.view, method: .get)?.specs, range.count == 1 else { return nil }
        return request.directives.onlyIfCached
            ? .notStored
            : .fetch(partPlan(range[0], ForwardReason(doubt), of: stored, validates: true))
    }

    /// - Parameter validates: whether `stored` has all that the request asks for, and is only to be validated.
    private func partPlan(
        _ range: ByteRangeSpec, _ reason: ForwardReason, of stored: StoredResponse?, validates: Bool = false
    ) -> FetchPlan {
        let kind: FetchKey.Kind = sharing == .shared ? .part(range, isAuthorized: request.hasAuthorization) : .unshared
        return FetchPlan(
            request: request, key: request.fetchKey(kind, knowing: resource, separates: usesOwnFetchKey(stored)),
            reason: reason, purpose: .part(range), resource: resource, former: stored, validates: validates,
            hasStandIn: validates)
    }
}
