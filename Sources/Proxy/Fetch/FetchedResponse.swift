import Bytes
import HTTPSemantics
import Routing
import Storage
import Synchronization
import Telemetry

/// The result of a fetch, given to its waiters when the response's head is there: the body may still be arriving. One
/// object for all waiters.
final class FetchedResponse: Sendable {
    enum Source: Sendable, Equatable {
        /// The origin's own response.
        case origin
        /// A stored response, which the origin confirmed (304).
        case validated
        /// A stored response, in place of the response of an origin that failed.
        case staleOnError(OriginFailure)
    }

    /// Why a body ends short.
    enum Shortfall: Sendable, Equatable {
        /// The origin did not send the whole body, or broke a rule of its syntax.
        case origin(UpstreamFailure, MessageSyntaxError.Reason?)
        /// There was no memory for the body, for too long.
        case noMemory

        /// The word for the log's `detail`.
        var detail: StaticString {
            switch self {
            case .origin(let failure, let rule): rule?.name ?? failure.name
            case .noMemory: Recorder.memoryFull
            }
        }
    }

    /// The fetch and the server that the response came from.
    struct Circumstances: Sendable {
        /// The request that the fetch was made for: the response is its own, whichever other requests may have it.
        let leader: ClientRequest
        /// The key under which the response belongs, if not its leader's.
        var otherKey: CacheKey?
        /// The other queries that the response answers (No-Vary-Search); `nil`: none.
        var search: NoVarySearch?
        /// The address of the server that answered, as text.
        let server: ByteSlice
        /// When the origin was asked.
        let requestTime: Moment
    }

    /// What is known only after the head.
    private struct Later: Sendable {
        var shortfall: Shortfall?
        var sharedAnswer: SharedAnswer?
    }

    private let circumstances: Circumstances
    let response: StoredResponse
    /// The response with the fields that only the leader may see (RFC 9111 §5.2.2.4, §5.2.2.7), where there are any.
    let leaderResponse: StoredResponse?
    /// The response whose fields a part is stored with, if not its own (`PartialResponse.keeper`).
    let partKeeper: StoredResponse?
    let source: Source
    let decision: HeadDecision
    /// The origin's status, 304 after a validation; `nil` if it did not answer.
    let originStatus: Status?
    /// Whether the response came with an `Age`: then it was not made for this request, and clients are sent its age
    /// (RFC 9111 §5.1).
    let hasAge: Bool
    /// When the origin's response had ended, in nanoseconds of the monotonic clock; 0 before.
    private let ended = Atomic<Int64>(0)
    private let resumed = Atomic<UInt8>(0)
    private let later = Guarded(Later())

    init(
        _ response: StoredResponse, leaderResponse: StoredResponse? = nil, partKeeper: StoredResponse? = nil,
        source: Source, _ decision: HeadDecision, originStatus: Status?, hasAge: Bool = false,
        _ circumstances: Circumstances
    ) {
        self.circumstances = circumstances
        self.response = response
        self.leaderResponse = leaderResponse
        self.partKeeper = partKeeper
        self.source = source
        self.decision = decision
        self.originStatus = originStatus
        self.hasAge = hasAge
    }

    var sharing: Sharing { decision.sharing }
    /// The content length that clients are sent, in bytes.
    var length: Int? { decision.length }
    /// Whether clients are told that the response is stored.
    var willBeStored: Bool { decision.announcesStored }
    /// The reason if it is not stored, as far as the head tells.
    var notStored: NotStoredReason? { decision.notStored }
    var leader: ClientRequest { circumstances.leader }
    var server: ByteSlice { circumstances.server }
    /// When the origin was asked.
    var requestTime: Moment { circumstances.requestTime }

    /// The origin's response has ended, successfully or not. The first call counts, which comes before a client on
    /// another loop can have the whole response.
    func noteEnd(at now: Moment) {
        if ended.load(ordering: .relaxed) == 0 { ended.store(now.monotonic, ordering: .relaxed) }
    }

    /// The body has broken off and goes on. Called before its readers get more of it.
    func noteResumption() { resumed.wrappingAdd(1, ordering: .relaxed) }

    /// How often the body has broken off and gone on.
    var resumes: UInt8 { resumed.load(ordering: .relaxed) }

    /// The body ends short. Called before any reader is told.
    func noteShortfall(_ shortfall: Shortfall) { later.withLock { $0.shortfall = shortfall } }

    /// Why the body ends short; `nil` if it does not, or only because no client wanted the rest.
    var shortfall: Shortfall? { later.withLock { $0.shortfall } }

    /// The answer that was made last for a joined request that asks for nothing special.
    var sharedAnswer: SharedAnswer? {
        get { later.withLock { $0.sharedAnswer } }
        set { later.withLock { $0.sharedAnswer = newValue } }
    }

    /// The time from the request to the origin until the end of its response, in nanoseconds; `nil` before that end.
    var upstreamDuration: UInt64? {
        let ended = ended.load(ordering: .relaxed)
        return ended == 0 ? nil : UInt64(max(0, ended - circumstances.requestTime.monotonic))
    }

    /// The key under which the response belongs.
    var key: CacheKey { circumstances.otherKey ?? leader.key }

    /// The response for the client that led, or for another one.
    func response(forLeader isForLeader: Bool) -> StoredResponse {
        isForLeader ? leaderResponse ?? response : response
    }

    /// Whether the response may answer requests other than the one that the fetch was made for.
    var mayServeOthers: Bool {
        if case .nobody = sharing { false } else { true }
    }

    /// Whether the response may answer `request`, which joined and whose head was complete at `time`, after `purges` of
    /// tags.
    ///
    /// RFC 9111 §4: the response must be storable, and match in the fields that `Vary` nominates; it must be fresh for
    /// a request that came after the head had arrived.
    func mayServe(_ request: ClientRequest, arrivedAt time: Moment, after purges: UInt64) -> Bool {
        guard isFor(request), !wasPassed(by: request.route) else { return false }
        if isOutdated(after: purges) || isTooFarOff(for: request) { return false }
        switch sharing {
        case .nobody:
            return false
        case .waitersOnly:
            break
        case .whileArriving:
            if cameLate(time), !response.facts.mayServeLateJoiner(with: request.directives, at: time) {
                return false
            }
        case .everyone:
            guard cameLate(time) else { break }
            guard case .fresh = response.facts.reuse(for: request.directives, at: time) else { return false }
        }
        // A stale response in place of a failure is only for requests that themselves allow it; the others go to the
        // origin.
        if case .staleOnError(let failure) = source,
            !response.facts.mayServeStale(
                on: failure, for: request.directives, at: time, policy: request.route.policy)
        {
            return false
        }
        let fields = request.fields
        return response.answers(fields.view) && response.hasEverything(wantedBy: request)
            && isForMatchingRequest(request)
    }

    /// Whether `request` would wait for the beginning of its range until all bytes before it have gone past the other
    /// readers: a fetch of its own brings the range sooner. The part of a whole that is kept is worth the wait, since
    /// no other request fetches it again.
    private func isTooFarOff(for request: ClientRequest) -> Bool {
        guard notStored == .tooLarge, response.parts == nil, request.fields.present.contains(.range),
            request.route.maxRanges > 0
        else { return false }
        let fields = request.fields
        guard let range = RangeRequest.only(fields.view, method: request.method) else { return false }
        return !range.begins(inFirst: GrowingBody.smallestWindow)
    }

    /// Whether one of the response's tags was purged, or one of its groups invalidated (RFC 9875 §3), since the origin
    /// was asked, and before a request came after `purges`. Looked up each time: a request may join after a purge that
    /// does not yet find these tags, and before the fetch finds the purge.
    private func isOutdated(after purges: UInt64) -> Bool {
        guard let tags = response.tags, let first = tags.firstPurge else { return false }
        return purges >= first
    }

    /// Whether the leader's request would have gone past the cache by the settings of a request that joins: a reload
    /// may have come since the response's head arrived, or not have reached the leader's loop yet.
    private func wasPassed(by route: Route) -> Bool {
        guard route !== leader.route else { return false }
        let fields = leader.fields
        return route.hasPassCookie(fields.view)
    }

    /// Whether `request` matches the leader's, or need not. A stale response in place of a failure belongs to no
    /// session.
    private func isForMatchingRequest(_ request: ClientRequest) -> Bool {
        if case .staleOnError = source { return true }
        return !response.facts.contains(.separatesRequests) || request.matchesForSharing(leader)
    }

    /// Whether a request that came at `time` came when the head was there already.
    private func cameLate(_ time: Moment) -> Bool {
        time.monotonic > response.facts.responseTime.monotonic
    }

    /// Whether the request's URL is the leader's, or one that gets the same response by the response's own
    /// `No-Vary-Search`.
    private func isFor(_ request: ClientRequest) -> Bool {
        if request.key == key || request.sentKey == leader.sentKey { return true }
        guard let search = circumstances.search else { return false }
        let (leading, joining) = (leader.sentKey.bytes, request.sentKey.bytes)
        return SearchKey.areEquivalent(leading.span, joining.span, under: search)
    }
}

extension Provenance {
    /// A fetch brought the response.
    mutating func note(_ fetched: FetchedResponse, at now: Moment) {
        let facts = fetched.response.facts
        originStatus = fetched.originStatus
        isStored = fetched.willBeStored
        // A late joiner gets a response made for an earlier request.
        sendsAge = fetched.hasAge || role == .joinedLate
        switch fetched.source {
        case .origin:
            verdict = wasPassed ? .pass : .miss
            // The operator's lifetime is none of a response that it does not make storable.
            let isLifetimeUsed = facts.lifetimeSource != .configured || isStored
            if facts.lifetimeSource != .none, isLifetimeUsed { timeToLive = facts.timeToLive(at: now) }
            if case .nobody(let reason) = fetched.sharing, !isPassedAnyway(fetched) {
                detail = reason.name
            } else {
                detail = fetched.notStored?.name
            }
        case .validated:
            sendsAge = true
            verdict = .revalidated
            timeToLive = facts.timeToLive(at: now)
        case .staleOnError:
            noteStandIn(facts, at: now)
        }
    }

    /// Whether the response's directives did not matter, since all requests of its route are passed.
    private func isPassedAnyway(_ fetched: FetchedResponse) -> Bool {
        guard forwarded == .bypass, case .cachingOff = fetched.notStored else { return false }
        return fetched.leader.route.passesAll
    }
}
