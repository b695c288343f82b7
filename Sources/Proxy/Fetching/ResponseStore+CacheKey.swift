import Bytes
import HTTPSemantics
import Storage

/// The store by `CacheKey`.
extension ResponseStore {
    func resource(_ key: CacheKey) -> CachedResource? { resource(hash: key.hash, key: key.bytes.span) }

    func store(_ response: StoredResponse, under key: CacheKey, generation: Generation, requested: Moment, popularity: Int) -> StoreOutcome {
        store(
            response, hash: key.hash, key: key.bytes.span, generation: generation, requested: requested.monotonic, popularity: popularity)
    }

    func storeParts(
        _ response: StoredResponse, bringing range: Range<Int>, under key: CacheKey, generation: Generation, requested: Moment
    ) -> StoreOutcome {
        storeParts(
            response, bringing: range, hash: key.hash, key: key.bytes.span, generation: generation, requested: requested.monotonic)
    }

    func drop(_ former: StoredResponse, of key: CacheKey) { drop(former, hash: key.hash, key: key.bytes.span) }

    func freshen(_ former: StoredResponse, by response: StoredResponse, under key: CacheKey, generation: Generation) -> StoreOutcome {
        freshen(former, with: response, hash: key.hash, key: key.bytes.span, generation: generation)
    }

    func markUnshareable(_ key: CacheKey, until: Int64, reason: NotSharedReason) {
        markUnshareable(UnshareableMarker(until: until, reason: reason), hash: key.hash, key: key.bytes.span)
    }

    func generation(_ key: CacheKey) -> Generation { generation(hash: key.hash) }
    func wasInvalidated(_ key: CacheKey, since former: Generation) -> Bool { wasInvalidated(hash: key.hash, since: former) }

    func invalidate(_ key: CacheKey) { invalidate(hash: key.hash, key: key.bytes.span) }
    func invalidate(_ key: CacheKey, after former: Generation) -> Generation? {
        invalidate(hash: key.hash, key: key.bytes.span, after: former)
    }

    func clearMarker(_ key: CacheKey) { clearMarker(hash: key.hash, key: key.bytes.span) }
    func learn(_ rule: VaryRule, for key: CacheKey) { _ = learnVary(rule, hash: key.hash, key: key.bytes.span) }
}

extension CachedResource {
    /// Why responses are not shared, as far as that is known and concerns a request with or without `Authorization`.
    func unshareable(at now: Moment, hasAuthorization: Bool) -> NotSharedReason? {
        guard let marker, marker.holds(at: now), hasAuthorization || marker.reason != .authorization else { return nil }
        return marker.reason
    }

    /// All stored variants.
    var responses: [StoredResponse] { (0..<count).map { response(at: $0) } }
}
