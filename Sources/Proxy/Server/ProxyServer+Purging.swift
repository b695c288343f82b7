import Bytes
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
    /// If all keys of the store must be examined, a walk serves all URLs, together with the other purges in progress
    /// (`Purges`).
    /// - Parameter completion: called on the loop with the number of responses removed, at once if no walk was needed;
    ///   with `nil` if the program ended before that.
    package func purge(_ urls: [ParsedURL], below prefixes: [ParsedURL], completion: @escaping (Int?) -> Void) {
        let writer = KeyWriter(hash: shared.keyHash)
        let starts = prefixes.map { url in
            url.write(to: writer, KeyPolicy())
            return writer.key().bytes
        }
        var others = PurgedURLs(below: starts)
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
        purges.begin(others) { [removed] more in completion(more.map { removed + $0 }) }
    }

    /// Removes all stored responses. Fetches in flight continue for the requests that wait for them, and are not stored.
    /// - Parameter completion: called on the loop with the number of responses removed; with `nil` if the program ended
    ///   before that.
    package func purgeAll(completion: @escaping (Int?) -> Void) {
        purges.begin(.everything, completion: completion)
    }

    /// Ends the purges in progress, which have then removed a part of their responses.
    package func cancelPurges() { purges.cancelAll() }
}
