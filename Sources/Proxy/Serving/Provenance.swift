import HTTPSemantics
import Storage
import Telemetry

/// The source of a response and its request's role in a shared fetch, for `Cache-Status`, the metrics and the access
/// log. No decision depends on it.
struct Provenance: Sendable {
    /// The fetch's number.
    var operation: UInt64?
    /// Why the response was not shared or stored, or another special circumstance (RFC 9211 §2.8).
    var detail: StaticString?
    /// The seconds for which the response stays fresh, negative if it is stale; `nil` if it cannot be reused.
    var timeToLive: Int64?
    var verdict: Verdict
    var role = Role.none
    /// Why the request was forwarded; `nil` if the store answered it.
    var forwarded: ForwardReason?
    var isStored = false
    /// Whether the response was not made for this request, so that its `Age` is sent (RFC 9111 §5.1).
    var tellsAge = false
    /// The origin's status, if it answered.
    var originStatus: Status?

    init(_ verdict: Verdict) { self.verdict = verdict }

    /// The request is forwarded, or will be. Until the origin answers, the verdict is a miss or a pass: the log has it
    /// if the client leaves.
    mutating func noteAsking(for reason: ForwardReason) {
        forwarded = reason
        verdict = wasPassed ? .pass : .miss
    }

    /// The request waits for the fetch of another one.
    mutating func noteJoined(late: Bool) {
        role = late ? .joinedLate : .joined
        verdict = wasPassed ? .pass : .miss
    }

    /// The store answers the request.
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

    /// A fetch brought the response.
    mutating func note(_ fetched: FetchedResponse, at now: Moment) {
        let facts = fetched.response.facts
        originStatus = fetched.originStatus
        isStored = fetched.willBeStored
        // A late joiner gets a response made for an earlier request.
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

    /// A stored response is used in place of a joined fetch's failure.
    mutating func noteStandIn(_ stored: StoredResponse, status: Status?, at now: Moment) {
        originStatus = status
        noteStandIn(stored.facts, at: now)
    }

    /// The stored response may even be fresh: another fetch may have stored it meanwhile, or the client may have
    /// refused a response of that age.
    private mutating func noteStandIn(_ facts: ResponseFacts, at now: Moment) {
        noteUse(of: facts, at: now)
        detail = "stale-if-error"
    }

    /// Whether the response's directives did not matter, since all requests of its route are passed.
    private func isPassedAnyway(_ fetched: FetchedResponse) -> Bool {
        guard forwarded == .bypass, case .cachingOff = fetched.notStored else { return false }
        return fetched.leader.route.passesAll
    }

    /// Whether neither the store, whatever its content, nor another request's fetch could have answered.
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
