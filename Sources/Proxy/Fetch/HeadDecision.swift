import HTTPSemantics
import Routing
import Storage

/// The decision made when the head of a response for the waiters is there: which requests may have the response,
/// whether it is stored, and how much of its body is kept. The response carries it (`FetchedResponse.decision`).
///
/// The decision depends on its arguments only, and changes no state. `HeadHandling` acts on it.
struct HeadDecision {
    let sharing: Sharing
    /// Why the response is not stored, as far as the head tells.
    private(set) var notStored: NotStoredReason?
    /// The length of the content that arrives, in bytes; `nil` if it is not announced.
    let contentLength: Int?
    /// The part of the representation that the content is, if a range was requested and a part came.
    let part: ReceivedPart?
    /// Whether the response is larger than the store's limit.
    let isTooLarge: Bool
    /// How much of the body is kept at first.
    private(set) var keeping: ArrivingBody.Keeping
    /// Whether clients are told that the response is stored.
    var announcesStored = false

    /// The content length that clients are sent, in bytes; `nil` if it is not announced, or is to be derived from the
    /// parts.
    var length: Int? { part == nil ? contentLength : nil }

    /// Whether the response is stored once complete: there is no reason against it (`notStored`).
    var willBeStored: Bool { keeping == .stored }

    /// The decision about a 304 that only the client that led gets: it has no body, and whether it is stored does not
    /// matter.
    static let notModifiedForLeader = HeadDecision.on(
        stored: .nobody(.prohibited(.status)), length: 0, isStored: false)

    /// The decision about a stored response that is the answer: it has all of its body.
    /// - Parameter isStored: whether the response was put into the store as it is.
    static func on(
        stored sharing: Sharing, length: Int?, isStored: Bool, notStored: NotStoredReason? = nil
    ) -> HeadDecision {
        HeadDecision(
            sharing: sharing, notStored: notStored, contentLength: length, part: nil, isTooLarge: false,
            keeping: .window, announcesStored: isStored)
    }

    /// Makes the decision. Not an initializer, which would retain its arguments.
    /// - Parameters:
    ///   - facts: the facts of the response as it would be stored.
    ///   - fields: the fields of its head.
    ///   - length: the length of its content in bytes; `nil` if it is not announced.
    ///   - part: the part of the representation that the content is, if a range was requested and a part came.
    ///   - policy: the policy of the plan's route.
    ///   - hasPassCookie: whether the request goes past the cache because of one of its cookies.
    ///   - objectLimit: the largest object that may be stored, in bytes.
    ///   - isOutdated: whether a tag of the response was purged, or a group invalidated.
    ///   - wasInvalidated: whether the key of the fetch was invalidated.
    static func on(
        _ facts: ResponseFacts, _ fields: FieldView, length: Int?, part: ReceivedPart? = nil,
        for plan: FetchPlan, _ policy: CachingPolicy, hasPassCookie: Bool, objectLimit: Int,
        isOutdated: Bool, wasInvalidated: @autoclosure () -> Bool
    ) -> HeadDecision {
        let length = part?.range.count ?? length
        // If the length is not announced, only the size of the head is known.
        let isTooLarge =
            StoredResponse.mostObjectSize(fields, content: length ?? 0, partOf: part == nil ? nil : plan.parts)
            > objectLimit
        let asked = plan.request.facts(asking: plan.method, hasPassCookie: hasPassCookie)
        let sharing = facts.sharing(answering: asked, policy: policy)
        var notStored = isOutdated ? .outdated : reasonNotToStore(facts, fields, part, asked, plan, policy)
        if notStored == nil, isTooLarge { notStored = .tooLarge }
        // The store would refuse the response anyway, but a client that is told that it is stored might rely on that.
        if notStored == nil, wasInvalidated() { notStored = .outdated }
        return HeadDecision(
            sharing: sharing, notStored: notStored, contentLength: length, part: part, isTooLarge: isTooLarge,
            keeping: notStored == nil ? .stored : isTooLarge ? .window : keepingUnstored(sharing))
    }

    private static func reasonNotToStore(
        _ facts: ResponseFacts, _ fields: FieldView, _ part: ReceivedPart?, _ asked: RequestFacts, _ plan: FetchPlan,
        _ policy: CachingPolicy
    ) -> NotStoredReason? {
        let request = plan.request
        if part != nil, !policy.storesPartialContent { return .partial }
        guard request.route.isCached else { return .cachingOff }
        // No key can include the content of a GET; the content of a POST has had its effect.
        if request.hasContent, asked.method != .post { return .requestContent }
        // A response to one client's conditions and range, passed on, may be an answer to these, as 412 and 416 are.
        if plan.isPass, request.isConditional, facts.status != .ok { return .requestCondition }
        // These statuses answer one client's condition or range, even if the origin was sent none (RFC 9110 §15.5.13,
        // §15.5.17).
        if facts.status == .preconditionFailed || facts.status == .rangeNotSatisfiable { return .requestCondition }
        return
            switch facts.storability(
                answering: asked,
                answersTarget: asked.method == .post && PostAnswer.isForTarget(fields, target: request.targetURI)
                    && !request.namesMethod,
                policy: policy)
        {
        case .store: nil
        // A part without a range request: the other parts are unknown.
        case .storePart: .partial
        case .doNotStore(let reason): reason
        }
    }

    /// The response is not stored after all, because of the key that it belongs under.
    mutating func forbidStoring(because reason: NotStoredReason) {
        notStored = reason
        if keeping == .stored { keeping = Self.keepingUnstored(sharing) }
    }

    /// How much is kept of the body of a response that is not stored: all of it if requests may join late. Does not
    /// apply to a response too large to be stored, which would be too large to be kept as well.
    private static func keepingUnstored(_ sharing: Sharing) -> ArrivingBody.Keeping {
        sharing.isForSeveral ? .forSharing : .window
    }
}

extension Sharing {
    /// The reason why requests for the key fetch alone for a while; `nil` if there is none.
    /// - Parameters:
    ///   - status: the status of the response.
    ///   - leaderWasReleased: whether an earlier fetch, which the leader's request had joined, brought a response that
    ///     only its own leader could have.
    func reasonToRemember(
        _ status: Status, for plan: FetchPlan, leaderWasReleased: @autoclosure () -> Bool
    ) -> NotSharedReason? {
        guard case .nobody(let found) = self else { return nil }
        let concernsOtherRequests = !status.concernsRequest || leaderWasReleased()
        // A part came without a range request: a later request would get only a part, too.
        let reason = found == .range && plan.range == nil ? .part : found
        // A response to HEAD says nothing of the response to GET, which has the same key.
        return plan.method != .head && reason.isRemembered && concernsOtherRequests ? reason : nil
    }
}

extension ClientRequest {
    /// Whether the request goes past the cache because of one of its cookies, by the settings at its arrival or by
    /// `settings`. Two bits nearly always decide.
    @inline(__always)
    func hasPassCookie(by settings: LoopSettings) -> Bool {
        hasPassCookie || (hasCookies && hasPassCookie(sinceReload: settings))
    }

    private func hasPassCookie(sinceReload settings: LoopSettings) -> Bool {
        let fields = fields
        let other = settings.route(head, fields.view, scheme)
        return other !== route && other.hasPassCookie(fields.view)
    }
}
