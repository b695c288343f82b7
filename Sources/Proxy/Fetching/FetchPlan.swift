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
        /// A validation in the background: it belongs to no client, so it is not cut when nobody waits (RFC 5861 §3).
        case refresh(of: StoredResponse)
        /// A range. `of`: the parts that are stored; what arrives goes with them if it has their strong entity tag (RFC
        /// 9111 §3.4). `validates`: they are all that is wanted, and are only to be validated.
        case part(ByteRangeSpec, of: StoredResponse?, validates: Bool)
    }

    let key: FetchKey
    /// Why the origin is asked (RFC 9211 §2.2).
    let reason: ForwardReason
    /// All that was stored under the key when the request was looked up.
    let resource: CachedResource?
    let purpose: Purpose
    /// Whether something is stored that may stand in if the origin fails (`Lookup.standIn`).
    let hasStandIn: Bool

    init(key: FetchKey, reason: ForwardReason, resource: CachedResource?, _ purpose: Purpose, hasStandIn: Bool) {
        self.key = key
        self.reason = reason
        self.hasStandIn = hasStandIn
        self.resource = resource
        self.purpose = purpose
    }

    /// Whether the fetch may serve others than the request it was made for.
    var isShared: Bool {
        switch key.kind {
        case .get, .head, .part, .anyPart: true
        case .unshared: false
        }
    }

    /// What the origin is asked where `request` led. It follows from the key, since all who share the key get the
    /// answer: a refresh in the background is a GET, whoever caused it.
    func method(for request: ClientRequest) -> Method {
        switch key.kind {
        case .get, .part, .anyPart: .get
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

    /// The stored responses whose validators are offered to the origin for `request`: all that could be chosen for it
    /// (RFC 9111 §4.3.1). Not those of other variants, though §4.1 allows it: origins that compress confirm a tag
    /// before they know what they would send. For the same reason, of what is encoded without a word in `Vary` only the
    /// one that goes first: beside it the tag of what is not encoded would be confirmed.
    func candidates(for request: FieldView) -> [StoredResponse] {
        switch purpose {
        case .pass: []
        case .part(_, let parts, let validates): validates ? parts.map { [$0] } ?? [] : []
        case .whole(let stored?) where stored.precedence == .byCoding: [stored]
        case .refresh(let stored) where stored.precedence == .byCoding: [stored]
        case .whole, .refresh: resource?.responses(matching: request) ?? []
        }
    }
}
