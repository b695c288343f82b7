import HTTPSemantics
import Storage

/// What is decided when the head of a response is there that those who wait will get: who may have it, whether it is
/// stored, and how much of its body is kept.
///
/// The decision follows from what is given; nothing is done yet, and nothing remembered. `Fetch.settle` acts on it.
struct HeadDecision {
    let sharing: Sharing
    /// Why it is not stored, as far as the head tells.
    private(set) var notStored: NotStoredReason?
    /// What they are told, in bytes; `nil` where it is not announced, or is to be told from the parts.
    let length: Int?
    /// Whether it is larger than what may be stored.
    let isTooLarge: Bool
    /// How much of its body is kept at first.
    private(set) var keeping: ArrivingBody.Keeping

    /// Whether it is stored once complete: nothing speaks against that (`notStored`).
    var willBeStored: Bool { keeping == .stored }

    /// Of a 304 that only the client that led gets: it has no body, and nobody asks whether it is stored.
    static let notModifiedForLeader = HeadDecision(
        sharing: .nobody(.prohibited(.status)), notStored: nil, length: 0, isTooLarge: false, keeping: .window)

    /// Decides. Not an initializer, which would retain what it is given.
    /// - Parameters:
    ///   - facts: of the response as it would be stored.
    ///   - fields: of its head.
    ///   - length: of its content in bytes, as far as it is announced.
    ///   - part: what it is of the representation, where a part was asked for and came.
    ///   - request: the one that led.
    ///   - hasPassCookie: whether that was to go past the cache by one of its cookies.
    ///   - objectLimit: how many bytes may be stored.
    ///   - isOutdated: whether one of its groups was invalidated.
    ///   - wasInvalidated: whether the key was under which it was asked for. Asked last: it takes a lock.
    static func on(
        _ facts: ResponseFacts, _ fields: FieldView, length: Int?, part: ReceivedPart? = nil,
        for request: ClientRequest, _ plan: FetchPlan, _ policy: CachingPolicy, hasPassCookie: Bool, objectLimit: Int,
        isOutdated: Bool, wasInvalidated: @autoclosure () -> Bool
    ) -> HeadDecision {
        let length = part?.range.count ?? length
        // Of what is not announced the head alone is known to count.
        let isTooLarge =
            StoredResponse.mostObjectSize(fields, content: length ?? 0, partOf: part == nil ? nil : plan.parts)
            > objectLimit
        let asked = request.facts(asking: plan.method(for: request), hasPassCookie: hasPassCookie)
        let sharing = facts.sharing(answering: asked, policy: policy)
        var notStored =
            isOutdated
            ? .outdated
            : reasonNotToStore(facts, fields, part, for: request, asked, plan, policy)
        if notStored == nil, isTooLarge { notStored = .tooLarge }
        // The store would refuse it, but whoever is told that it is stored might rely on that.
        if notStored == nil, wasInvalidated() { notStored = .outdated }
        return HeadDecision(
            sharing: sharing, notStored: notStored, length: part == nil ? length : nil,
            isTooLarge: isTooLarge,
            keeping: notStored == nil ? .stored : isTooLarge ? .window : keepingUnstored(sharing))
    }

    private static func reasonNotToStore(
        _ facts: ResponseFacts, _ fields: FieldView, _ part: ReceivedPart?, for request: ClientRequest,
        _ asked: RequestFacts, _ plan: FetchPlan, _ policy: CachingPolicy
    ) -> NotStoredReason? {
        if part != nil, !policy.storesPartialContent { return .partial }
        guard request.route.isCached else { return .cachingOff }
        // Content on GET is nothing that a key could hold; that of a POST has had its effect.
        if request.hasContent, asked.method != .post { return .requestContent }
        // What went through with one client's conditions and range may be an answer to those, as 412 and 416 are.
        if plan.isPass, request.isConditional, facts.status != .ok { return .requestCondition }
        // These answer one client's condition or range, whoever was asked without it (RFC 9110 §15.5.13, §15.5.17).
        if facts.status == .preconditionFailed || facts.status == .rangeNotSatisfiable { return .requestCondition }
        return
            switch facts.storability(
                answering: asked,
                answersTarget: asked.method == .post && PostAnswer.isForTarget(fields, target: request.targetURI)
                    && !request.namesMethod,
                policy: policy)
        {
        case .store: nil
        // Nobody asked for a part: nothing is known of what else there is.
        case .storePart: .partial
        case .doNotStore(let reason): reason
        }
    }

    /// The key that it belongs under says that it is not stored after all.
    mutating func forbidStoring(because reason: NotStoredReason) {
        notStored = reason
        if keeping == .stored { keeping = Self.keepingUnstored(sharing) }
    }

    /// How much is kept of what is not stored: all, where others may come late. Not for what is too large to be stored:
    /// that would be too large to be kept as well.
    private static func keepingUnstored(_ sharing: Sharing) -> ArrivingBody.Keeping {
        sharing.isForSeveral ? .forSharing : .window
    }
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

extension Sharing {
    /// Why requests for the key fetch alone for a while; `nil` where nothing speaks for that.
    /// - Parameters:
    ///   - status: of the response.
    ///   - method: what the origin was asked.
    ///   - leaderWasReleased: whether a request before the leader's got what nobody else could have, either.
    func reasonToRemember(
        _ status: Status, for plan: FetchPlan, _ method: Method, leaderWasReleased: @autoclosure () -> Bool
    ) -> NotSharedReason? {
        guard case .nobody(let found) = self else { return nil }
        let isForOthersToo = !status.concernsRequest || leaderWasReleased()
        // Nobody asked for a part, and whoever asks again gets as little.
        let reason = found == .range && plan.range == nil ? .part : found
        // What HEAD gets says nothing of what GET will get, whose key it has.
        return method != .head && reason.isRemembered && isForOthersToo ? reason : nil
    }
}

extension NotSharedReason {
    /// For how long it is remembered, in nanoseconds.
    /// - Parameters:
    ///   - status: of the response that it was found out by.
    ///   - limit: `unshareable-ttl`.
    func memory(after status: Status, atMost limit: Int64) -> Int64 {
        if self == .serverError { return Self.errorMemory }
        return status.concernsRequest ? min(limit, Self.requestErrorMemory) : limit
    }

    /// Where errors are not shared (`sharesErrors`): for this long each request tries on its own, in nanoseconds. The
    /// origin may recover at any moment.
    private static let errorMemory: Int64 = 1_000_000_000
    /// Two requests in a row got an answer about themselves: perhaps all do, and for this long they do not wait for one
    /// another, in nanoseconds. No longer: two clients, which may mean it, are no reason for each of all the others to
    /// ask by itself.
    private static let requestErrorMemory: Int64 = 5_000_000_000

    /// Whether the next response for the key will likely be no more shareable: worth remembering.
    fileprivate var isRemembered: Bool {
        switch self {
        case .prohibited(.noStore), .prohibited(.private), .prohibited(.authorization), .prohibited(.setCookie),
            .prohibited(.varyStar), .prohibited(.varyForwarded), .prohibited(.status), .noCache, .mustRevalidate,
            .notCacheable, .incremental, .serverError, .part:
            true
        case .prohibited(.passCookie), .prohibited(.boundConnection), .prohibited(.requestNoStore), .method, .range,
            .outgrown,
            .search, .unlike:
            false
        }
    }
}
