import Bytes
import HTTPSemantics
import Libevent
import Routing
import Storage

/// Purging at an operator's request. All of these are called on the control loop; the store may be changed on any thread.
extension ProxyServer {
    /// Removes the stored responses that `request` names, or makes them stale. Fetches in flight for its URLs continue for
    /// the requests that wait for them, and are not stored. Fetches with one of its tags continue likewise; after a soft
    /// purge, they are stored as stale.
    ///
    /// If all keys of the store must be examined, a walk serves all URLs, together with the other purges in progress
    /// (`Purges`). The responses with its tags are not found any more when this returns, and their memory is freed later.
    /// - Parameter completion: called on the loop, at once if no walk was needed; with `nil` if the program ended before
    ///   the walk did.
    package func purge(_ request: PurgeRequest, completion: @escaping (PurgeOutcome?) -> Void) {
        let softening =
            request.isSoft ? Softening(at: control.now, grace: loopSettings.settings.purge.softGrace) : nil
        if request.isOfEverything {
            return purges.begin(.everything, softening: softening) { purged in
                completion(purged.map { PurgeOutcome(count: $0, isExact: true) })
            }
        }
        var (walked, count) = purgeKeys(of: request.urls, softening)
        let writer = KeyWriter(hash: shared.keyHash)
        for url in request.prefixes {
            url.write(to: writer, KeyPolicy())
            walked.add(below: writer.key().bytes)
        }
        var isExact = true
        if !request.tags.isEmpty {
            isExact = request.tags.count == 1 && count == 0 && walked.isEmpty && !purges.isSweeping
            let purged = shared.purge(tags: request.tags, softening: softening)
            count += purged
            // A look-up makes a response stale that a soft purge has reached.
            if purged > 0, softening == nil { purges.sweep() }
        }
        let outcome = PurgeOutcome(count: count, isExact: isExact)
        guard !walked.isEmpty else { return completion(outcome) }
        purges.begin(walked, softening: softening) { purged in
            completion(purged.map { PurgeOutcome(count: outcome.count + $0, isExact: outcome.isExact) })
        }
    }

    /// Purges each key that is known of `urls`.
    /// - Returns: the URLs that have one key for each set of values of the fields and cookies in their route's key, and
    ///   how many responses were purged.
    private func purgeKeys(of urls: [ParsedURL], _ softening: Softening?) -> (others: PurgedURLs, count: Int) {
        let writer = KeyWriter(hash: shared.keyHash)
        var (others, count) = (PurgedURLs(), 0)
        for url in urls {
            let route = loopSettings.route(of: url)
            url.write(to: writer, route.key)
            let (keys, purged) = shared.invalidate(
                writer.key(), using: writer, keepsNotes: false, softening: softening)
            count += purged
            if route.key.dividesByFields { for key in keys { others.add(urlOf: key) } }
        }
        return (others, count)
    }

    /// Ends the purges in progress, which have then removed a part of their responses.
    package func cancelPurges() { purges.cancelAll() }

    /// Lets the purges that operators ask for reach this server.
    func openPurgeDesk() {
        purgeDesk.purge = { [weak self] request, completion in
            guard let self else { return completion(nil) }
            // Before the purge here: a response from before it may stand in the engine.
            tier?.purges.add(request, using: KeyWriter(hash: shared.keyHash)) { loopSettings.route(of: $0).key }
            purge(request, completion: completion)
        }
        shared.purgeMail.open(purgeDesk, on: control)
    }
}
