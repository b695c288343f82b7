import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage

/// Removing stored responses at an operator's request. All of these are called on the control loop; the store may be
/// changed on any thread.
extension ProxyServer {
    /// Removes the responses stored for `urls`, with all their variants and under any equivalent query
    /// (No-Vary-Search), and the responses for `prefixes`, which have no query, and for every URL below a prefix, as a
    /// route's `path` matches. Fetches in flight for these URLs continue for the requests that wait for them, and are
    /// not stored.
    ///
    /// If all keys of the store must be examined, they are walked once for all URLs, some hundred keys at a time, so
    /// that the loop does other work in between. A request during the walk may still be answered from a response that
    /// is not removed yet.
    /// - Parameter completion: called on the loop with the number of responses removed, at once if no walk was needed;
    ///   not called if the loop ends before.
    package func purge(_ urls: [ParsedURL], below prefixes: [ParsedURL], completion: @escaping (Int) -> Void) {
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
            // This URL has one key for each set of values of the fields and cookies in the route's key.
            if route.key.dividesByFields { for key in [key] + variations { others.add(urlOf: key) } }
        }
        guard !others.isEmpty else { return completion(removed) }
        // Before the walk: a fetch stores its response before it ends, so that its key is found here or by the walk. A
        // fetch that begins from now on sends its request after the purge, so its response may be stored.
        for key in fetchedKeys(where: others.contains) { removed += shared.store.remove(key) }
        for origin in origins { origin.closeFetches(where: others.contains) }
        // This invalidates more than the URLs below the prefixes, which costs at most a fetch.
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

    /// The keys of the fetches in flight that `isWanted` accepts.
    private func fetchedKeys(where isWanted: (CacheKey) -> Bool) -> Set<CacheKey> {
        var keys: Set<CacheKey> = []
        for case let fetch as FetchOperation in origins.flatMap(\.fetches.operations) {
            if isWanted(fetch.key.primary) { keys.insert(fetch.key.primary) }
            if let key = fetch.value?.key, isWanted(key) { keys.insert(key) }
        }
        return keys
    }

    /// Continues to the end of the walk. The loop does other work between two steps.
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

    /// Removes all stored responses, one shard at a time, so that the loop does other work in between. A request
    /// meanwhile may still be answered from a response that is not removed yet. Fetches in flight continue for the
    /// requests that wait for them, and are not stored.
    /// - Parameter completion: called on the loop with the number of responses removed; not called if the loop ends
    ///   before.
    package func purgeAll(completion: @escaping (Int) -> Void) {
        let store = shared.store
        var start = ResponseStore.Walk()
        // From this step on no fetch that has begun is stored: see `remove`.
        let removed = store.removeAll(along: &start) ?? 0
        shared.variations.noteInvalidationOfAll()
        for origin in origins { origin.closeFetches { _ in true } }
        walk(start, removed: removed, completion) { store.removeAll(along: &$0) }
    }
}
