import HTTPSemantics
import Routing
import Storage

/// The purpose of a fetch, decided at look-up. An object, because it is passed on often.
final class FetchPlan: Sendable {
    enum Purpose: Sendable {
        /// The client's preconditions and range go to the origin as they came, and its answer comes back as it is.
        case pass
        /// The whole response is requested, with the validators of the stored responses, and the client's conditions
        /// and range are answered from it. `validating`: the stored response that the client would get, as it is in the
        /// store.
        case whole(validating: StoredResponse?)
        /// A validation in the background. It belongs to no client, so it is not cut when no client waits (RFC 5861
        /// §3).
        case refresh(of: StoredResponse)
        /// A range. `of`: the stored parts; the new part is combined with them if it has their strong entity tag (RFC
        /// 9111 §3.4). `validates`: the stored parts contain all that the client wants, and are only to be validated.
        case part(ByteRangeSpec, of: StoredResponse?, validates: Bool)
    }

    let key: FetchKey
    /// Why the origin is asked (RFC 9211 §2.2).
    let reason: ForwardReason
    /// The stored responses and notes under the key when the request was looked up.
    let resource: CachedResource?
    let purpose: Purpose
    /// Whether a stored response may stand in if the origin fails (`Lookup.standIn`).
    let hasStandIn: Bool

    init(key: FetchKey, reason: ForwardReason, resource: CachedResource?, _ purpose: Purpose, hasStandIn: Bool) {
        self.key = key
        self.reason = reason
        self.hasStandIn = hasStandIn
        self.resource = resource
        self.purpose = purpose
    }

    /// Whether the fetch may serve requests other than the one it was made for.
    var isShared: Bool {
        switch key.kind {
        case .get, .head, .part, .anyPart: true
        case .unshared: false
        }
    }

    /// The method that the origin is sent where `request` led. It follows from the key, since all requests with the key
    /// get the response: a refresh in the background is a GET, even if a HEAD caused it.
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

    /// The range that is requested; `nil`: the whole.
    var range: ByteRangeSpec? {
        if case .part(let range, _, _) = purpose { range } else { nil }
    }

    /// The stored parts, where a range is requested.
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
    /// (RFC 9111 §4.3.1). Other variants are left out, though §4.1 allows them: origins that compress confirm a tag
    /// before they know which encoding they would send. For the same reason, of encoded responses without `Vary` only
    /// the preferred one is offered: beside it the origin would confirm the tag of the unencoded one.
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

extension FetchPlan {
    /// The group by which invalidations find a fetch for `request` alone; `nil` if its response is never stored.
    /// Fetches for several requests have their group from their key.
    func group(ofFetchFor request: ClientRequest) -> Int? {
        guard request.route.isCached else { return nil }
        switch request.method {
        case .get: return key.primary.group
        case .post: return request.route.policy.storesPostAnswers ? key.primary.group : nil
        case .head, .put, .delete, .connect, .options, .trace, .patch, .otherSafe, .otherIdempotent, .other: return nil
        }
    }
}
