import Bytes
import HTTPSemantics
import Storage

/// What is stored goes, at an operator's word. All on the control loop; the store may be changed from anywhere.
extension ProxyServer {
    /// Removes what is stored for a URL, with all its variants and whatever query it was fetched with (No-Vary-Search); what is on its way for it goes on for those who wait, and is not stored.
    /// - Returns: how many responses; `nil` when `url` is no absolute `http` URL.
    public func purge(url: String) -> Int? {
        guard let request = ParsedURL(url) else { return nil }
        let fields = request.fields
        guard let route = runtime.route(request.head, fields.view) else { return 0 }
        let writer = KeyWriter(hash: shared.keyHash)
        request.write(to: writer, route.key)
        let key = writer.key()
        // The URL's own key first: see `Worker.invalidate`.
        var removed = remove(key, at: route.origin)
        let sent = key.bytes
        shared.variations.noteInvalidation(of: sent.span)
        for variation in shared.variations.all(for: sent.span) {
            removed += remove(writer.key(key, under: variation), at: route.origin)
        }
        return removed
    }

    private func remove(_ key: CacheKey, at origin: Origin) -> Int {
        let bytes = key.bytes
        let removed = shared.store.remove(hash: key.hash, key: bytes.span)
        origin.closeFetches(of: key)
        return removed
    }

    /// Removes everything that is stored; what is on its way goes on for those who wait, and is not stored.
    /// - Returns: how many responses.
    public func purgeAll() -> Int {
        let removed = shared.store.removeAll()
        shared.variations.noteInvalidationOfAll()
        for origin in runtime.origins { origin.closeFetches() }
        return removed
    }
}
