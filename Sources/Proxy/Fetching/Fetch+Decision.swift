import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Upstream

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
        let fields = head.fields
        let announced =
            method == .head ? head.head.contentLength.map { Int(clamping: $0) } : head.head.framing.announcedLength
        var decision = HeadDecision.on(
            facts, fields, length: announced, part: part, for: request, plan, policy, hasPassCookie: hasPassCookie,
            objectLimit: worker.storage.objectLimit, isOutdated: isOutdated(CacheGroups.of(fields, requested: sentAt)),
            wasInvalidated: worker.shared.store.wasInvalidated(request.key, since: placement.generation))
        if let reason = chooseStoreKey(by: fields, willBeStored: decision.notStored == nil) {
            decision.forbidStoring(because: reason)
        }
        arriving = ArrivingBody(decision.keeping, length: part?.range.count ?? announced, part: part)
        return decision
    }

    /// Whether what arrived goes into the store: a reload may have come since its head did.
    var isToBeStored: Bool { keeping == .stored && !hasPassCookie }

    /// Whether the leader's request was to go past the cache by one of its cookies: also by settings that came since.
    /// Nearly always two bits tell.
    @inline(__always)
    var hasPassCookie: Bool { request.hasPassCookie || (request.hasCookies && hasPassCookieByNow) }

    private var hasPassCookieByNow: Bool {
        let fields = request.fields
        let route = worker.loopSettings.route(request.head, fields.view)
        return route !== request.route && route.hasPassCookie(fields.view)
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

