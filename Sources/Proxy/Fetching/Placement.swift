import Bytes
import HTTPSemantics
import Storage

/// The key under which a response with `No-Vary-Search` is stored, and whether that key was invalidated meanwhile. A
/// request is looked up by the rules learnt for its path; if the response has another rule, it is stored under the key
/// by that rule.
///
/// Belongs to one fetch, on its loop.
struct Placement {
    /// The generation of the key of the fetch, taken before the request to the origin.
    private(set) var generation: Generation
    /// The generation of the key as sent, likewise.
    private var sentGeneration: Generation
    /// The invalidations of the request's path, likewise (`SearchVariations.invalidations(of:)`).
    private let pathInvalidations: InvalidationMark
    /// The response's `No-Vary-Search`, as far as it counts.
    private(set) var search = NoVarySearch.default
    /// The key where the response belongs, if not that of the fetch.
    private var elsewhere: Elsewhere?

    private struct Elsewhere {
        let key: CacheKey
        let generation: Generation
        let wasInvalidated: Bool
    }

    /// - Parameter generations: the generations of all keys that the response might be stored under
    ///   (`Worker.generations`).
    init(_ generations: (ofKey: Generation, ofSentKey: Generation, ofPath: InvalidationMark)) {
        (generation, sentGeneration, pathInvalidations) = generations
    }

    /// The key under which the response belongs, if not that of the fetch.
    var otherKey: CacheKey? { elsewhere?.key }
    /// The generation of the key under which the response belongs.
    var storeGeneration: Generation { elsewhere?.generation ?? generation }

    /// The request's own invalidation is done (`Worker.invalidate`).
    @inline(__always)
    mutating func moveOn(to next: Generation) {
        generation = next
        sentGeneration = next
    }

    /// Called when the head is there. Only a response that will be stored teaches a rule, of any status: the draft
    /// refers to the most recently *stored* response with the field. A response without the field revokes no rule.
    /// - Returns: the reason if the response is not stored after all.
    mutating func chooseStoreKey(
        by fields: FieldView, for request: ClientRequest, willBeStored: Bool, in store: ResponseStore,
        _ variations: SearchVariations, _ keys: KeyWriter
    ) -> NotStoredReason? {
        search = Self.stated(fields)
        if search.isDefault, !request.isUnderVariation { return nil }
        let sent = request.sentKey.bytes
        var storeKey = request.sentKey
        if !search.isDefault,
            let variation = willBeStored
                ? variations.learn(search, for: sent.span) : variations.known(search, for: sent.span)
        {
            let isUnchanged = variation === request.variation && request.isUnderVariation
            storeKey = isUnchanged ? request.key : keys.key(request.sentKey, under: variation)
        }
        guard storeKey != request.key else {
            elsewhere = nil
            return nil
        }
        let storeGeneration = storeKey == request.sentKey ? sentGeneration : store.generation(storeKey)
        // In this order: an invalidation begins with the key as sent and then asks for the variations. So either this
        // check finds the invalidation, or the invalidation found the variation.
        let wasInvalidated =
            variations.wasInvalidated(sent, since: pathInvalidations)
            || store.wasInvalidated(request.key, since: generation)
            || store.wasInvalidated(request.sentKey, since: sentGeneration)
        elsewhere = Elsewhere(key: storeKey, generation: storeGeneration, wasInvalidated: wasInvalidated)
        return wasInvalidated ? .outdated : nil
    }

    /// Whether the response belongs under another key, and that was invalidated while the response was made.
    func wasInvalidatedElsewhere(in store: ResponseStore) -> Bool {
        guard let elsewhere else { return false }
        return elsewhere.wasInvalidated || store.wasInvalidated(elsewhere.key, since: elsewhere.generation)
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
