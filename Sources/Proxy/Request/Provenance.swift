import Bytes
import HTTPSemantics
import Routing
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
    var sendsAge = false
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

    mutating func noteUse(of facts: ResponseFacts, at now: Moment) {
        let timeToLive = facts.timeToLive(at: now)
        self.timeToLive = timeToLive
        verdict = timeToLive > 0 ? .hit : .stale
        sendsAge = true
    }

    /// A stored response is used in place of a joined fetch's failure.
    mutating func noteStandIn(_ stored: StoredResponse, status: Status?, at now: Moment) {
        originStatus = status
        noteStandIn(stored.facts, at: now)
    }

    /// The stored response may even be fresh: another fetch may have stored it meanwhile, or the client may have
    /// refused a response of that age.
    mutating func noteStandIn(_ facts: ResponseFacts, at now: Moment) {
        noteUse(of: facts, at: now)
        detail = "stale-if-error"
    }

    /// Whether neither the store, whatever its content, nor another request's fetch could have answered.
    var wasPassed: Bool {
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

extension ResponseForwarding {
    /// Appends the fields that the proxy adds to a response of this provenance.
    func append(to buffer: ByteBuffer, _ provenance: Provenance, persists: Bool, version: HTTPVersion) {
        buffer.append(via)
        // The writer is not bound to a local constant, which would retain it.
        if let status = provenance.cacheStatus { cacheStatus?.write(status, detail: provenance.detail, to: buffer) }
        appendConnection(to: buffer, persists: persists, version: version)
    }
}
