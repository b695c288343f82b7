import HTTPSemantics
import Routing
import Storage

/// The purpose of a fetch, decided at look-up. A part of the `Fetch`.
struct FetchPlan: Sendable {
    enum Purpose: Sendable {
        /// The client's preconditions and range go to the origin as they came, and its answer comes back as it is.
        case pass
        /// The whole response is requested, with the validators of the stored responses, and the client's conditions
        /// and range are answered from it.
        case whole
        /// A validation in the background. It belongs to no client, so it is not cut when no client waits (RFC 5861
        /// §3).
        case refresh
        /// A range is requested.
        case part(ByteRangeSpec)
    }

    /// The request that was looked up.
    let request: ClientRequest
    let key: FetchKey
    /// Why the origin is asked (RFC 9211 §2.2).
    let reason: ForwardReason
    let purpose: Purpose
    /// The stored responses and notes under the key when the request was looked up.
    var resource: CachedResource?
    /// The stored response that the answer may confirm, or the stored parts, with which a new part is combined if it
    /// has their strong entity tag (RFC 9111 §3.4). As it is in the store.
    var former: StoredResponse?
    /// Whether `former` has all that the request asks for, and is only to be validated.
    var validates = false
    /// Whether a stored response may stand in if the origin fails (`Lookup.standIn`).
    var hasStandIn = false

    /// Whether the fetch may serve requests other than the one it was made for.
    var isShared: Bool { if case .unshared = key.kind { false } else { true } }
    var isPass: Bool { if case .pass = purpose { true } else { false } }
    /// Whether the origin is asked to switch protocols.
    var asksForUpgrade: Bool { isPass && request.head.asksForUpgrade }
    var isRefresh: Bool { if case .refresh = purpose { true } else { false } }

    /// The method that the origin is sent. It follows from the key, since all requests with the key get the response: a
    /// refresh in the background is a GET, even if a HEAD caused it.
    var method: Method {
        switch key.kind {
        case .get, .part, .anyPart: .get
        case .head: .head
        case .unshared: request.method
        }
    }

    /// The range that is requested; `nil`: the whole.
    var range: ByteRangeSpec? {
        if case .part(let range) = purpose { range } else { nil }
    }

    /// The stored parts, where a range is requested.
    var parts: StoredResponse? { range == nil ? nil : former }

    /// The stored response to validate.
    var stored: StoredResponse? { validates ? former : nil }

    /// The stored responses whose validators are offered to the origin: all that could be chosen for the request (RFC
    /// 9111 §4.3.1). Other variants are left out, though §4.1 allows them: origins that compress confirm a tag before
    /// they know which encoding they would send. For the same reason, of encoded responses without `Vary` only the
    /// preferred one is offered: beside it the origin would confirm the tag of the unencoded one.
    var candidates: [StoredResponse] {
        switch purpose {
        case .pass: return []
        case .part: return stored.map { [$0] } ?? []
        case .whole, .refresh:
            if let stored, stored.precedence == .byCoding { return [stored] }
            let fields = request.fields
            return resource?.responses(matching: fields.view) ?? []
        }
    }

    /// Whether the fetch is for its request alone only because coalescing is off. It sends the same request as all
    /// others would have sent, so its result is worth remembering for them.
    var recordsResultForOthers: Bool { !isShared && !isPass && !request.route.isCoalesced }

    /// The group by which invalidations find a fetch for the request alone; `nil` if its response is never stored.
    /// Fetches for several requests have their group from their key.
    var groupAlone: Int? {
        guard request.route.isCached else { return nil }
        switch request.method {
        case .get: return key.primary.group
        case .post: return request.route.policy.storesPostAnswers ? key.primary.group : nil
        case .head, .put, .delete, .connect, .options, .trace, .patch, .otherSafe, .otherIdempotent, .other: return nil
        }
    }
}
