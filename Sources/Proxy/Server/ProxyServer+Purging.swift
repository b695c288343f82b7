import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage

/// What is stored goes, at an operator's word. All on the control loop; the store may be changed from anywhere.
extension ProxyServer {
    /// Removes what is stored for `urls`, with all their variants and whatever query they were fetched with
    /// (No-Vary-Search), and for `prefixes`, which have no query, and everything below them, as a route's `path`
    /// matches. What is on its way for them goes on for those who wait, and is not stored.
    ///
    /// Where that takes a look at all that is stored, it is walked once for all of them, some hundred keys at a time, so
    /// that the loop serves others in between: what is asked for meanwhile may still be answered from it.
    /// - Parameter completion: called on the loop with how many responses went, at once if nothing had to be walked;
    ///   not if the loop ends before.
    public func purge(_ urls: [ParsedURL], below prefixes: [ParsedURL], completion: @escaping (Int) -> Void) {
        let writer = KeyWriter(hash: shared.keyHash)
        let starts = prefixes.map { url in
            url.write(to: writer, KeyPolicy())
            return writer.key().bytes
        }
        var others = PurgedURLs(below: starts, hash: shared.keyHash)
        var removed = 0
        for url in urls {
            let fields = url.fields
            let route = loopSettings.route(url.head, fields.view)
            url.write(to: writer, route.key)
            let key = writer.key()
            // The URL's own key first: see `Worker.invalidate`.
            removed += remove(key)
            let sent = key.bytes
            shared.variations.noteInvalidation(of: sent.span)
            let variations = shared.variations.all(for: sent.span).map { writer.key(key, under: $0) }
            for key in variations { removed += remove(key) }
            // Of this URL there is a key for each set of values of the fields and cookies that the route's key has.
            if route.key.dividesByFields { for key in [key] + variations { others.add(urlOf: key) } }
        }
        guard !others.isEmpty else { return completion(removed) }
        // Before the walk: what is fetched now is stored before it is fetched no more. What begins from now on is asked
        // for after the purge, and may be stored.
        for key in fetchedKeys(where: others.contains) { removed += shared.store.remove(key) }
        for origin in origins { origin.closeFetches(where: others.contains) }
        // More than is below, which costs a fetch at most.
        if !prefixes.isEmpty { shared.variations.noteInvalidationOfAll() }
        walk(.init(), removed: removed, completion) { [store = shared.store, others] walk in
            store.remove(along: &walk, where: others.contains)
        }
    }

    /// The store first: see `Worker.invalidateWhatElse`.
    private func remove(_ key: CacheKey) -> Int {
        let removed = shared.store.remove(key)
        for origin in origins { origin.closeFetches(of: key) }
        return removed
    }

    /// The wanted keys of what is on its way.
    private func fetchedKeys(where isWanted: (CacheKey) -> Bool) -> Set<CacheKey> {
        var keys: Set<CacheKey> = []
        for case let fetch as FetchOperation in origins.flatMap(\.fetches.operations) {
            if isWanted(fetch.key.primary) { keys.insert(fetch.key.primary) }
            if let key = fetch.value?.key, isWanted(key) { keys.insert(key) }
        }
        return keys
    }

    /// Goes on to the end of the walk, so that the loop serves others between two steps.
    private func walk(
        _ walk: ResponseStore.Walk, removed: Int, _ completion: @escaping (Int) -> Void,
        by step: @escaping (inout ResponseStore.Walk) -> Int?
    ) {
        var walk = walk
        guard let more = step(&walk) else { return completion(removed) }
        control.schedule(after: 0) { [weak self, walk] in
            self?.walk(walk, removed: removed + more, completion, by: step)
        }
    }

    /// Removes everything that is stored, a shard at a time, so that the loop serves others in between: what is asked for
    /// meanwhile may still be answered from it. What is on its way goes on for those who wait, and is not stored.
    /// - Parameter completion: called on the loop with how many responses went; not if the loop ends before.
    public func purgeAll(completion: @escaping (Int) -> Void) {
        let store = shared.store
        var start = ResponseStore.Walk()
        // From this step on nothing that has begun is stored: see `remove`.
        let removed = store.removeAll(along: &start) ?? 0
        shared.variations.noteInvalidationOfAll()
        for origin in origins { origin.closeFetches { _ in true } }
        walk(start, removed: removed, completion) { store.removeAll(along: &$0) }
    }
}
