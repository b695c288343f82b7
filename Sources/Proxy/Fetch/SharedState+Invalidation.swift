import Bytes
import Coalescing
import HTTPSemantics
import Routing
import SharedTier
import Storage

/// Invalidation of stored responses and of fetches in flight, after an unsafe request (RFC 9111 §4.4) or for a purge.
///
/// No response that was requested before an invalidation of its URL is stored or freshened after it:
///
/// - *An operation is found by the key of its fetch*, from before the request is sent until the operation ends. An
///   invalidation marks the operations that it finds, at all origins, also those of replaced settings. Then it drops
///   the stored responses of the key, under the lock of the key's shard. A fetch reads its mark under that lock when it
///   stores the response, before its operation ends. So a response stored before the drop is dropped, and a fetch that
///   stores after the drop finds the mark. An operation that the invalidation does not find has ended, and its response
///   is stored already; or it is not in flight yet, and its request is sent after the invalidation. A fetch that still
///   waits for its slot is marked, although its response will be newer.
/// - *A cancelled operation ends before its fetch*, which may still store the bytes received. *A response with
///   `No-Vary-Search` may belong under another key than that of its fetch*, which the fetch learns from the head. In
///   both cases the fetch asks `SearchVariations` whether its path was noted as invalidated since the request was sent.
///   An invalidation notes the path before it marks, and in the same step learns the variations of the path. If a fetch
///   learns its variation before this step, the invalidation drops the responses stored under it; in any case the fetch
///   finds the note when it stores after the drop. From the delivery on, the operation is found by the other key too
///   (`OperationQueueManager.addAlias`), and the mark alone decides: a path's note may be another path's.
/// - *A 304 or a response to HEAD* replaces a stored response only if that one is still stored
///   (`ResponseStore.freshen`). An invalidation drops it, so no mark is needed.
/// - *The response to an unsafe request* was made after the change, so the invalidation that it causes does not mark
///   its own fetch (RFC 9110 §9.3.3). Another unsafe request to the URL in between does.
/// - *Tags and cache groups* (RFC 9875) are known from the head on only. They have numbers instead of marks: a stored
///   response is not valid if it was requested before the last purge of one of its tags. `TagTable` has the order of
///   writes.
/// - *A soft purge* marks the fetches in flight like any other, but the stored responses become stale instead of being
///   dropped. A fetch for a soft purge of tags is not marked: what it stores is made stale.
extension SharedState {
    /// Invalidates one URL, under all keys of the URL that its `No-Vary-Search` rules make. Fetches in flight for the
    /// URL are no longer shared, and their responses are not stored. Any thread.
    /// - Parameters:
    ///   - sent: the key of the URL as sent.
    ///   - keepsNotes: whether the `Vary` rules and markers of the keys stay.
    ///   - own: the fetch whose response causes the invalidation.
    ///   - softening: how the stored responses become stale; `nil`: they are dropped.
    /// - Returns: the keys, and the number of stored responses that were dropped or made stale.
    @discardableResult
    func invalidate(
        _ sent: CacheKey, using writer: KeyWriter, keepsNotes: Bool, except own: FetchOperation? = nil,
        softening: Softening? = nil
    ) -> (keys: [CacheKey], purged: Int) {
        let bytes = sent.bytes
        let keys = [sent] + variations.invalidate(bytes.span).map { writer.key(sent, under: $0) }
        return (keys, keys.reduce(0) { $0 + drop($1, keepsNotes: keepsNotes, except: own, softening: softening) })
    }

    /// Marks the fetches in flight for one key, and then drops the responses that are stored under it, or makes them
    /// stale. Any thread.
    /// - Returns: the number of these responses.
    @discardableResult
    func drop(
        _ key: CacheKey, keepsNotes: Bool = true, except own: FetchOperation?, softening: Softening? = nil
    ) -> Int {
        for origin in origins { origin.invalidateFetches(of: key, except: own) }
        return softening.map { store.soften(key, by: $0) } ?? store.remove(key, keepsNotes: keepsNotes)
    }

    /// Purges the responses with one of these tags, of all origins. Fetches in flight that have one of them are no longer
    /// shared. Any thread.
    /// - Parameter softening: how the stored responses become stale; `nil`: they are removed.
    /// - Returns: see `TagTable.purge`.
    func purge(tags names: [ByteSlice], softening: Softening?) -> Int {
        let count = tags.purge(names, softening: softening)
        closePurgedFetches()
        return count
    }

    /// Invalidates the cache groups of one origin (RFC 9875 §3). Any thread.
    func invalidate(_ groups: [String], of authority: String) {
        tags.invalidate(groups, of: authority)
        closePurgedFetches()
    }

    /// Closes the fetches whose response has a tag that was purged since the origin was asked. Such a response may be
    /// stored: the store's look-ups find the purge.
    private func closePurgedFetches() {
        for origin in origins {
            for case let fetch as FetchOperation in origin.fetches.operations
            where fetch.value?.response.tags?.firstPurge != nil {
                fetch.close()
            }
        }
    }

    /// Marks the fetches in flight for keys that `isMeant` accepts. The caller removes the responses that are stored
    /// under such keys afterwards. Any thread.
    func invalidateFetches(where isMeant: (CacheKey) -> Bool) {
        // This concerns more than the keys that are meant, which costs at most a fetch.
        variations.invalidateAll()
        for origin in origins { origin.invalidateFetches(where: isMeant) }
    }
}

extension Origin {
    /// Marks the fetches for this key, and the fetches whose responses belong under it, as invalidated. Examines only
    /// the fetches in the key's group, since it is called for unsafe requests, on a worker's loop.
    /// - Parameter own: the fetch whose response causes the invalidation.
    func invalidateFetches(of key: CacheKey, except own: FetchOperation?) {
        for case let fetch as FetchOperation in fetches.operations(inGroup: key.group) where fetch !== own {
            fetch.invalidate()
        }
    }

    /// Marks the fetches for keys that `isMeant` accepts. Examines all fetches in flight.
    func invalidateFetches(where isMeant: (CacheKey) -> Bool) {
        for case let fetch as FetchOperation in fetches.operations
        where isMeant(fetch.key.primary) || fetch.value.map({ isMeant($0.key) }) ?? false {
            fetch.invalidate()
        }
    }
}

extension LoopContext {
    /// Invalidates stored responses after a successful unsafe request (RFC 9111 §4.4): responses for its target, and
    /// for the targets of the same origin that its response names. Where the route's key has fields or cookies, only
    /// the key with the request's own values is invalidated: finding the others is a walk through the whole store, as a
    /// purge makes it, and one tenant's POST need not cost the others their pages.
    /// - Parameter own: the request's own fetch, whose response may be stored.
    func invalidate(
        _ request: ClientRequest, answeredBy response: FieldView, status: Status, except own: FetchOperation?
    ) {
        let groups = CacheGroups.invalidated(by: response, method: request.method, status: status)
        if !groups.isEmpty {
            let authority = request.authority
            shared.invalidate(groups, of: authority)
            for group in tier == nil ? [] : groups {
                shared.tier.add(TierPurge(.group, TagTable.name(group, at: authority), isSoft: false))
            }
        }
        invalidateEverywhere(request.sentKey, except: own)
        let base = request.targetURI
        for related in Invalidation.relatedTargets(of: response, base: base) {
            guard let url = ParsedURL("\(request.scheme.name)://\(String(base.authority))\(String(related))") else {
                continue
            }
            let (fields, route) = (request.fields, loopSettings.route(of: url))
            url.write(to: keys, route.key, as: fields.view)
            invalidateEverywhere(keys.key(), except: own)
        }
    }

    /// Invalidates one URL here, and on the machines that share a tier with this one.
    private func invalidateEverywhere(_ key: CacheKey, except own: FetchOperation?) {
        if tier != nil {
            let bytes = key.bytes
            shared.tier.add(TierPurge(.url, bytes[0..<key.url.count], isSoft: false))
        }
        shared.invalidate(key, using: keys, keepsNotes: true, except: own)
    }
}
