import Bytes
import Coalescing
import HTTPSemantics
import Routing
import Storage

/// The key under which a response with `No-Vary-Search` is stored. A request is looked up by the rules learnt for its
/// path (`SearchKey`); if the response has another rule, it is stored under the key by that rule. The operation is then
/// found there too, and serves only the waiters that the response says it is for; the others look again. If a response
/// fetched under a shared key is not for all URLs of that key, a marker sends later requests to the keys of their own
/// URLs until a response is stored under the shared key again.
///
/// Belongs to one fetch, on its loop.
struct Placement {
    /// The number of invalidations when the origin was asked (`SearchVariations.invalidations`).
    var formerInvalidations: UInt64 = 0
    /// The response's `No-Vary-Search`, as far as it counts; `nil` if that is the default.
    private(set) var search: NoVarySearch?
    /// The key where the response belongs, if not that of the fetch.
    private(set) var otherKey: CacheKey?
    /// Whether an invalidation of the key where the response belongs finds the fetch.
    var isFound = true

    /// Called when the head is there. Only a response that will be stored teaches a rule, of any status: the draft
    /// refers to the most recently *stored* response with the field. A response without the field revokes no rule: any
    /// client could make a path forget its rule by requesting an error page.
    mutating func chooseStoreKey(
        by fields: FieldView, for request: ClientRequest, willBeStored: Bool, in variations: SearchVariations,
        _ keys: KeyWriter
    ) {
        let stated = Self.stated(fields)
        search = stated.isDefault ? nil : stated
        if search == nil, !request.isUnderVariation { return }
        let sent = request.sentKey.bytes
        var storeKey = request.sentKey
        if let search,
            let variation = willBeStored
                ? variations.learn(search, for: sent.span) : variations.known(search, for: sent.span)
        {
            let isUnchanged = variation === request.variation && request.isUnderVariation
            storeKey = isUnchanged ? request.key : keys.key(request.sentKey, under: variation)
        }
        otherKey = storeKey == request.key ? nil : storeKey
        isFound = otherKey == nil
    }

    /// Whether an invalidation concerns the response of `fetch`. Called under the lock of a shard of the store, too. Not
    /// a method: the placement would be copied for it.
    static func wasInvalidated(_ fetch: Fetch) -> Bool {
        guard let operation = fetch.operation, !operation.wasInvalidated else { return true }
        // An invalidation finds no operation that was cancelled, and none by a key that it does not have yet.
        guard operation.hasEnded || !fetch.placement.isFound else { return false }
        let sent = fetch.request.sentKey.bytes
        return fetch.context.variations.wasInvalidated(sent.span, since: fetch.placement.formerInvalidations)
    }

    /// Whether a stored response still belongs under the key that `request` found it under, once it has been updated.
    static func staysUnderItsKey(_ response: StoredResponse, for request: ClientRequest) -> Bool {
        guard request.isUnderVariation else { return true }
        let head = response.head
        return stated(head.view) == request.variation?.rule
    }

    /// The response's `No-Vary-Search`. A field too large to be learnt does not count.
    static func stated(_ fields: FieldView) -> NoVarySearch {
        let stated = NoVarySearch(fields)
        return stated.size <= SearchVariations.largest ? stated : .default
    }
}
