import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage

/// What is stored goes, at an operator's word. All on the control loop; the store may be changed from anywhere.
extension ProxyServer {
    /// Removes what is stored for a URL, with all its variants and whatever query it was fetched with (No-Vary-Search);
    /// what is on its way for it goes on for those who wait, and is not stored.
    /// - Returns: how many responses.
    public func purge(_ url: ParsedURL) -> Int {
        let fields = url.fields
        let route = loopSettings.route(url.head, fields.view)
        let writer = KeyWriter(hash: shared.keyHash)
        url.write(to: writer, route.key)
        let key = writer.key()
        // Of this URL there is a key for each set of values of the fields and cookies that the route's key has.
        let dividesByFields = route.key.dividesByFields
        func remove(_ key: CacheKey) -> Int {
            self.remove([key] + (dividesByFields ? keys(withURLOf: key) : []))
        }
        // The URL's own key first: see `Worker.invalidate`.
        var removed = remove(key)
        let sent = key.bytes
        shared.variations.noteInvalidation(of: sent.span)
        for variation in shared.variations.all(for: sent.span) {
            removed += remove(writer.key(key, under: variation))
        }
        return removed
    }

    /// Those under which something is stored or fetched for the URL of `key`.
    private func keys(withURLOf key: CacheKey) -> [CacheKey] {
        // In this order: what is fetched now is stored before it is fetched no more.
        fetchedKeys { $0.url.isEqual(to: key.url) } + shared.store.keys(withURLOf: key)
    }

    /// Those of what is on its way.
    private func fetchedKeys(where isWanted: (CacheKey) -> Bool) -> [CacheKey] {
        origins.flatMap(\.fetches.operations).flatMap { operation -> [CacheKey] in
            guard let fetch = operation as? FetchOperation else { return [] }
            return [fetch.key.primary] + (fetch.value.map { [$0.key] } ?? [])
        }.filter(isWanted)
    }

    /// All of them in one pass over what is in flight, which may be thousands. The store first: see
    /// `Worker.invalidateWhatElse`.
    private func remove(_ keys: [CacheKey]) -> Int {
        let keys = Set(keys)
        let removed = keys.reduce(0) { $0 + shared.store.remove($1) }
        for origin in origins { origin.closeFetches { keys.contains($0) } }
        return removed
    }

    /// Removes what is stored for URLs without a query and for everything below them, as a route's `path` matches; what
    /// is on its way for them goes on for those who wait, and is not stored. The store is walked once, a shard at a time,
    /// so that the loop serves others in between: what is asked for meanwhile may still be answered from it.
    /// - Parameter completion: called on the loop with how many responses went, at once if there is no URL; not if the
    ///   loop ends before.
    public func purge(below urls: [ParsedURL], completion: @escaping (Int) -> Void) {
        guard !urls.isEmpty else { return completion(0) }
        let starts = urls.map { url in
            let writer = KeyWriter(hash: shared.keyHash)
            url.write(to: writer, KeyPolicy())
            return writer.key().bytes
        }
        // Before the walk: see `keys(withURLOf:)`. What begins from now on is asked for after the purge, and may be
        // stored.
        let removed = remove(fetchedKeys { key in starts.contains { key.isBelow($0.span) } })
        // More than is below, which costs a fetch at most.
        shared.variations.noteInvalidationOfAll()
        walk(fromShard: 0, below: starts, removed: removed, completion)
    }

    private func walk(
        fromShard index: Int, below urls: [ByteSlice], removed: Int, _ completion: @escaping (Int) -> Void
    ) {
        guard index < shared.store.shardCount else { return completion(removed) }
        let removed = removed + shared.store.remove(below: urls, inShard: index)
        control.schedule(after: 0) { [weak self] in
            self?.walk(fromShard: index + 1, below: urls, removed: removed, completion)
        }
    }

    /// Removes everything that is stored; what is on its way goes on for those who wait, and is not stored.
    /// - Returns: how many responses.
    public func purgeAll() -> Int {
        let removed = shared.store.removeAll()
        shared.variations.noteInvalidationOfAll()
        for origin in origins { origin.closeFetches { _ in true } }
        return removed
    }
}
