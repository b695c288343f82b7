import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

/// What is decided when the head of a response is there that those who wait will get.
struct HeadDecision {
    let sharing: Sharing
    /// Why it is not stored, as far as the head tells.
    let notStored: NotStoredReason?
    /// What they are told, in bytes; `nil` where it is not announced, or is to be told from the parts.
    let length: Int?
    /// How much of its body is held at first.
    let keeping: ArrivingBody.Keeping
}

/// Who may have the response, whether and where it is stored, and how much of its body is held.
extension Fetch {
    var keeping: ArrivingBody.Keeping { arriving.keeping }

    /// Decides on the response, and begins it so: the only place where a head settles the key that the response belongs
    /// under and what its body is to be.
    /// - Parameters:
    ///   - facts: of the response as it would be stored.
    ///   - part: what it is of the representation, where a part was asked for and came.
    func settle(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, part: ReceivedPart? = nil
    ) -> HeadDecision {
        let announced =
            method == .head ? head.head.contentLength.map { Int(clamping: $0) } : head.head.framing.announcedLength
        let length = part?.range.count ?? announced
        let sharing = sharing(of: facts, policy)
        let reason = reasonNotToStore(head, facts, policy, length: length ?? 0, part: part)
        let notStored = chooseStoreKey(by: head.fields, willBeStored: reason == nil) ?? reason
        let keeping = keeping(notStored, sharing, length: length ?? 0)
        arriving = ArrivingBody(keeping, length: length, part: part)
        return HeadDecision(
            sharing: sharing, notStored: notStored, length: part == nil ? length : nil, keeping: keeping)
    }

    private func keeping(_ notStored: NotStoredReason?, _ sharing: Sharing, length: Int) -> ArrivingBody.Keeping {
        if notStored == nil { return .stored }
        // Kept whole for who comes late is only what might be stored as well, by its size.
        return sharing.isForSeveral && length <= worker.storage.objectLimit ? .forSharing : .window
    }

    /// Whether what arrived goes into the store: a reload may have come since its head did.
    var isToBeStored: Bool { keeping == .stored && !hasPassCookie }

    func sharing(of facts: ResponseFacts, _ policy: CachingPolicy) -> Sharing {
        facts.sharing(
            method: method, request: request.directives, hasAuthorization: request.hasAuthorization,
            hasPassCookie: hasPassCookie, policy: policy)
    }

    /// Whether the leader's request was to go past the cache by one of its cookies: also by settings that came since.
    /// Nearly always two bits tell.
    @inline(__always)
    var hasPassCookie: Bool { request.hasPassCookie || (request.hasCookies && hasPassCookieByNow) }

    private var hasPassCookieByNow: Bool {
        let fields = request.fields
        let route = worker.loopSettings.route(request.head, fields.view)
        return route !== request.route && route.hasPassCookie(fields.view)
    }

    /// - Parameter length: what would be stored, in bytes, as far as it is announced.
    private func reasonNotToStore(
        _ head: borrowing ReceivedHead, _ facts: ResponseFacts, _ policy: CachingPolicy, length: Int,
        part: ReceivedPart?
    ) -> NotStoredReason? {
        if isOutdated(CacheGroups.of(head.fields, requested: sentAt)) { return .outdated }
        if part != nil, !policy.storesPartialContent { return .partial }
        guard request.route.isCached else { return .cachingOff }
        // Content on GET is nothing that a key could hold; that of a POST has had its effect.
        if request.hasContent, method != .post { return .requestContent }
        // What went through with one client's conditions and range may be an answer to those, as 412 and 416 are.
        if plan.isPass, request.isConditional, facts.status != .ok { return .requestCondition }
        // These answer one client's condition or range, whoever was asked without it (RFC 9110 §15.5.13, §15.5.17).
        if facts.status == .preconditionFailed || facts.status == .rangeNotSatisfiable { return .requestCondition }
        switch facts.storability(
            method: method, request: request.directives, hasAuthorization: request.hasAuthorization,
            hasPassCookie: hasPassCookie,
            answersTarget: method == .post && PostAnswer.isForTarget(head.fields, target: request.targetURI)
                && !request.namesMethod,
            policy: policy)
        {
        case .store: break
        // Nobody asked for a part: nothing is known of what else there is.
        case .storePart: return .partial
        case .doNotStore(let reason): return reason
        }
        if length > worker.storage.objectLimit { return .tooLarge }
        // The store would refuse it, but whoever is told that it is stored might rely on that.
        return worker.shared.store.wasInvalidated(request.key, since: placement.generation) ? .outdated : nil
    }

    // MARK: What is remembered

    /// For a while, requests with this key fetch alone, all at the same time.
    func remember(_ reason: NotSharedReason) {
        let memory = reason == .serverError ? Self.errorMemory : worker.settings.coalescing.unshareableTTL.nanoseconds
        worker.shared.store.markUnshareable(request.key, until: worker.now + memory, reason: reason)
    }

    /// Its response goes to those with the leader's cookies: requests with others shall not wait for it again. Where
    /// nobody had cookies nothing is written down.
    func rememberCookies(_ operation: FetchOperation) {
        guard request.hasCookies || operation.waiterCount > 1,
            worker.shared.store.resource(storeKey)?.separatesCookies(at: worker.moment) != true
        else { return }
        remember(.cookies)
    }

    /// Where errors are not shared (`sharesErrors`): for this long each request tries on its own, in nanoseconds. The
    /// origin may recover at any moment.
    private static let errorMemory: Int64 = 1_000_000_000
}

extension Sharing {
    /// Whether those who come while it arrives may have the response.
    var isForLateJoiners: Bool {
        switch self {
        case .everyone, .whileArriving: true
        case .waitersOnly, .nobody: false
        }
    }

    /// Whether more than the client that asked may have the response.
    var isForSeveral: Bool {
        switch self {
        case .everyone, .whileArriving, .waitersOnly: true
        case .nobody: false
        }
    }
}

extension NotSharedReason {
    /// Whether the next response for the key will likely be no more shareable: worth remembering.
    var isRemembered: Bool {
        switch self {
        case .prohibited(.noStore), .prohibited(.private), .prohibited(.authorization), .prohibited(.setCookie),
            .prohibited(.varyStar),
            .prohibited(.varyForwarded), .noCache, .mustRevalidate, .notCacheable, .serverError, .part:
            true
        case .prohibited(.passCookie), .prohibited(.status), .prohibited(.requestNoStore), .method, .range, .search,
            .cookies:
            false
        }
    }
}
