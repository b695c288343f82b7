import HTTPSemantics
import Storage
import Telemetry

/// Where a response came from, and what part its request had in a shared fetch, for `Cache-Status`, the metrics and the
/// access log. Nothing is decided by it.
struct Provenance: Sendable {
    /// The fetch's number.
    var operation: UInt64?
    /// Why it was not shared or stored, or what else was special (RFC 9211 §2.8).
    var detail: StaticString?
    /// Seconds the response stays fresh, negative when it is stale; `nil` when it cannot be reused.
    var timeToLive: Int64?
    var verdict: Verdict
    var role = Role.none
    /// Why the origin was asked; `nil` for what was answered from the store.
    var forwarded: ForwardReason?
    var isStored = false
    /// Whether the response was not made for this request, so that its age is told (RFC 9111 §5.1).
    var tellsAge = false
    /// The origin's status, if it answered.
    var originStatus: Status?

    init(_ verdict: Verdict) { self.verdict = verdict }

    /// The origin is asked, or will be. Until it answers, the request is a miss or was passed: what the log tells if
    /// the client leaves.
    mutating func noteAsking(for reason: ForwardReason) {
        forwarded = reason
        verdict = wasPassed ? .pass : .miss
    }

    /// The request waits for what another one asked for.
    mutating func noteJoined(late: Bool) {
        role = late ? .joinedLate : .joined
        verdict = wasPassed ? .pass : .miss
    }

    /// What is answered from the store.
    mutating func note(_ stored: StoredResponse, detail: StaticString?, at now: Moment) {
        forwarded = nil
        self.detail = detail
        noteUse(of: stored.facts, at: now)
    }

    private mutating func noteUse(of facts: ResponseFacts, at now: Moment) {
        let timeToLive = facts.timeToLive(at: now)
        self.timeToLive = timeToLive
        verdict = timeToLive > 0 ? .hit : .stale
        tellsAge = true
    }

    /// What a fetch brought.
    mutating func note(_ fetched: FetchedResponse, at now: Moment) {
        let facts = fetched.response.facts
        originStatus = fetched.originStatus
        isStored = fetched.willBeStored
        // A late joiner gets what was made for an earlier request.
        tellsAge = fetched.hasAge || role == .joinedLate
        switch fetched.source {
        case .origin:
            verdict = wasPassed ? .pass : .miss
            if facts.lifetimeSource != .none { timeToLive = facts.timeToLive(at: now) }
            if case .nobody(let reason) = fetched.sharing, !isPassedAnyway(fetched) {
                detail = reason.name
            } else {
                detail = fetched.notStored?.name
            }
        case .validated:
            tellsAge = true
            verdict = .revalidated
            timeToLive = facts.timeToLive(at: now)
        case .staleOnError:
            noteStandIn(facts, at: now)
        }
    }

    /// What is stored, in place of what a joined fetch failed to bring.
    mutating func noteStandIn(_ stored: StoredResponse, status: Status?, at now: Moment) {
        originStatus = status
        noteStandIn(stored.facts, at: now)
    }

    /// The stored response may even be fresh: where another fetch has stored it meanwhile, or where the client wanted
    /// none of that age.
    private mutating func noteStandIn(_ facts: ResponseFacts, at now: Moment) {
        noteUse(of: facts, at: now)
        detail = "stale-if-error"
    }

    /// Whether what the response says was of no account, since all requests of its route are passed.
    private func isPassedAnyway(_ fetched: FetchedResponse) -> Bool {
        guard forwarded == .bypass, case .cachingOff = fetched.notStored else { return false }
        return fetched.leader.route.passesAll
    }

    /// Whether the store could not have answered, whatever was in it; and not another request's fetch, either.
    private var wasPassed: Bool {
        switch forwarded {
        case .bypass: !hasJoined
        case .method, .request: true
        case .uriMiss, .varyMiss, .stale, .partial, nil: false
        }
    }

    private var hasJoined: Bool {
        switch role {
        case .joined, .joinedLate: true
        case .none, .alone, .led: false
        }
    }

    /// The provenance in the words of RFC 9211.
    var cacheStatus: CacheStatus? {
        let handling: CacheStatus.Handling
        if let forwarded {
            handling = .forwarded(forwarded)
        } else {
            switch verdict {
            case .hit, .stale, .revalidated: handling = .hit
            case .miss, .pass, .synthetic, .refused: return nil
            }
        }
        var status = CacheStatus(handling)
        status.forwardStatus = originStatus
        status.stored = isStored
        status.collapsed = hasJoined
        status.timeToLive = timeToLive
        return status
    }
}
