import HTTPSemantics
import Storage

/// What a fetch is for, decided at look-up. An object, because it is passed on often.
final class FetchPlan: Sendable {
    enum Purpose: Sendable {
        /// The client's preconditions and range go to the origin as they came, and its answer comes back as it is.
        case pass
        /// The whole response is asked for, with the validators of what is stored, and the client's wishes are met from
        /// that. `validating`: what of it the client would get, as it is in the store.
        case whole(validating: StoredResponse?)
        /// The same in the background: it belongs to no client, so it is not cut when nobody waits (RFC 5861 §3).
        case refresh(of: StoredResponse)
        /// A range. `of`: the parts that are stored; what arrives goes with them if it has their strong entity tag (RFC
        /// 9111 §3.4). `validates`: they are all that is wanted, and are only to be validated.
        case part(ByteRangeSpec, of: StoredResponse?, validates: Bool)
    }

    let key: FetchKey
    /// Why the origin is asked (RFC 9211 §2.2).
    let reason: ForwardReason
    /// All that was stored under the key when the request was looked up: its variants' validators are offered (RFC 9111
    /// §4.3.1).
    let resource: CachedResource?
    let purpose: Purpose
    /// What is stored and may stand in if the origin fails: what is validated, marked as invalidated where one of its
    /// groups was.
    let fallback: StoredResponse?

    init(key: FetchKey, reason: ForwardReason, resource: CachedResource?, _ purpose: Purpose, fallback: StoredResponse?)
    {
        self.key = key
        self.reason = reason
        self.fallback = fallback
        self.resource = resource
        self.purpose = purpose
    }

    /// Whether the fetch may serve others than the request it was made for.
    var isShared: Bool {
        switch key.kind {
        case .get, .head, .part: true
        case .unshared: false
        }
    }

    /// What the origin is asked where `request` led. It follows from the key, since all who share the key get the
    /// answer: a refresh in the background is a GET, whoever caused it.
    func method(for request: ClientRequest) -> Method {
        switch key.kind {
        case .get, .part: .get
        case .head: .head
        case .unshared: request.method
        }
    }

    var isPass: Bool {
        if case .pass = purpose { true } else { false }
    }

    var isRefresh: Bool {
        if case .refresh = purpose { true } else { false }
    }

    /// The range that is asked for; `nil`: the whole.
    var range: ByteRangeSpec? {
        if case .part(let range, _, _) = purpose { range } else { nil }
    }

    /// The parts that are stored, where a range is asked for.
    var parts: StoredResponse? {
        if case .part(_, let parts, _) = purpose { parts } else { nil }
    }

    /// The stored response to validate.
    var stored: StoredResponse? {
        switch purpose {
        case .pass: nil
        case .whole(let stored): stored
        case .refresh(let stored): stored
        case .part(_, let parts, let validates): validates ? parts : nil
        }
    }

    /// What is stored and may be confirmed by the origin.
    struct Candidate {
        let response: StoredResponse
        /// Whether it could be chosen for the request (RFC 9111 §4.1): then by any validator. Another variant only by its
        /// strong tag: that names one representation, and a 304 with it says that the request gets the same. A weak
        /// tag, or a date, may be the same for several (RFC 9110 §8.8.1).
        let answersRequest: Bool
    }

    /// Those whose validators are offered to the origin for `request` (RFC 9111 §4.3.1).
    func candidates(for request: FieldView) -> [Candidate] {
        switch purpose {
        case .pass: return []
        case .part(_, let parts, let validates):
            guard validates, let parts else { return [] }
            return [Candidate(response: parts, answersRequest: true)]
        case .whole, .refresh:
            var candidates: [Candidate] = []
            var offersOthers = true
            for stored in resource?.responses ?? [] {
                let answers = stored.answers(request)
                let hasStrongTag = stored.facts.contains(.hasStrongETag)
                if answers || hasStrongTag { candidates.append(Candidate(response: stored, answersRequest: answers)) }
                // Where there is a tag the origin does not look at dates (RFC 9110 §13.1.3).
                if answers, !hasStrongTag, !stored.facts.contains(.hasWeakETag) { offersOthers = false }
            }
            return offersOthers ? candidates : candidates.filter(\.answersRequest)
        }
    }
}
