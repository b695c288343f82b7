import Bytes
import Coalescing
import HTTPSemantics
import Libevent
package import Routing
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
            let (keys, dropped) = shared.invalidate(writer.key(), using: writer, keepsNotes: false)
            removed += dropped
            // This URL has one key for each set of values of the fields and cookies in the route's key.
            if route.key.dividesByFields { for key in keys { others.add(urlOf: key) } }
        }
        guard !others.isEmpty else { return completion(removed) }
        // Before the walk. A fetch that begins from now on sends its request after the purge, so its response may be
        // stored.
        shared.invalidateFetches(where: others.contains)
        walk(.init(), removed: removed, completion) { [store = shared.store, others] walk in
            store.remove(along: &walk, where: others.contains)
        }
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
        // All fetches are marked in this turn, and again before each further step.
        func step(_ walk: inout ResponseStore.Walk) -> Int? {
            shared.invalidateFetches { _ in true }
            return shared.store.removeAll(along: &walk)
        }
        var start = ResponseStore.Walk()
        let removed = step(&start) ?? 0
        walk(start, removed: removed, completion, by: step)
    }
}
