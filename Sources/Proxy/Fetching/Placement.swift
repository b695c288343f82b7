import Bytes
import HTTPSemantics
import Storage

/// Under which key a response with `No-Vary-Search` is stored, and whether that was invalidated meanwhile. A request is
/// looked up under what is known of its path; if the response says otherwise, it goes where its own word puts it.
///
/// Of one fetch, on its loop.
struct Placement {
    /// Of the key it is fetched under, taken before the origin was asked.
    private(set) var generation: Generation
    /// Of the key as sent, likewise.
    private var sentGeneration: Generation
    /// Of the request's path, likewise (`SearchVariations.invalidations(of:)`).
    private let pathInvalidations: InvalidationMark
    /// What the response says of queries, as far as it counts.
    private(set) var search = NoVarySearch.default
    /// Where the response belongs, if not under the key it was fetched under.
    private var elsewhere: Elsewhere?

    private struct Elsewhere {
        let key: CacheKey
        let generation: Generation
        let wasInvalidated: Bool
    }

    /// - Parameter generations: of all keys that the response might be stored under (`Worker.generations`).
    init(_ generations: (ofKey: Generation, ofSentKey: Generation, ofPath: InvalidationMark)) {
        (generation, sentGeneration, pathInvalidations) = generations
    }

    /// The key under which the response belongs, where it is another than that it was fetched under.
    var otherKey: CacheKey? { elsewhere?.key }
    /// Of the key under which the response belongs.
    var storeGeneration: Generation { elsewhere?.generation ?? generation }

    /// The request's own invalidation is done (`Worker.invalidate`).
    @inline(__always)
    mutating func moveOn(to next: Generation) {
        generation = next
        sentGeneration = next
    }

    /// Called when the head is there. Only what will be stored teaches: the draft goes by the most recently *stored*
    /// response with the field, whatever its status; one without the field takes nothing back.
    /// - Returns: why it is not stored after all.
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
        // In this order: an invalidation begins with the key as sent and asks for variations then. So it shows here, or
        // the variation showed there.
        let wasInvalidated =
            variations.wasInvalidated(sent, since: pathInvalidations)
            || store.wasInvalidated(request.key, since: generation)
            || store.wasInvalidated(request.sentKey, since: sentGeneration)
        elsewhere = Elsewhere(key: storeKey, generation: storeGeneration, wasInvalidated: wasInvalidated)
        return wasInvalidated ? .outdated : nil
    }

    /// Whether the response belongs under another key, and something was invalidated there while it was made.
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

    /// What a response says of queries. A field too large to be learnt does not count.
    static func stated(_ fields: FieldView) -> NoVarySearch {
        let stated = NoVarySearch(fields)
        return stated.size <= SearchVariations.largest ? stated : .default
    }
}
