package import Libevent

/// The addresses to which origins' names last resolved. A value; times are monotonic nanoseconds.
///
/// ```
/// unknown ─answer→ fresh ─its time is over, all forgotten→ expired ─answer→ fresh
///                              expired ─look-up fails→ stale ─answer→ fresh
///                              any ─there is no such name, longestStale is over→ unknown
/// ```
/// The addresses of a stale name are used (RFC 8767), and the name is looked up again beside the requests.
struct KnownNames: Sendable {
    private struct Known: Sendable {
        let addresses: [SocketAddress]
        /// Until when the addresses are fresh.
        let until: Int64
        /// The generation of the answer. If it is older than the present one, the name must be looked up anew.
        var generation: Int
        /// When the name is looked up again; set while the name is stale.
        var nextLookupAt: Int64?
    }

    /// The state of a name.
    enum Knowledge: Equatable {
        case fresh([SocketAddress])
        /// `needsLookup`: the caller must look the name up, and uses these addresses without waiting.
        case stale([SocketAddress], needsLookup: Bool)
        /// The name must be looked up.
        case unknown
    }

    /// The result of noting an answer.
    struct Settled {
        /// The answer for the waiters: the former addresses, if the look-up failed.
        let answer: Result<[SocketAddress], ResolveError>
        var news: NameNews?
    }

    /// How often all names were forgotten.
    private(set) var generation = 0
    /// Bounded by the number of servers in all configurations loaded within `longestStale`.
    private var known: [UpstreamServer.Location: Known] = [:]

    /// - Parameter now: no earlier than in previous calls.
    mutating func knowledge(of server: UpstreamServer.Location, at now: Int64) -> Knowledge {
        guard let old = known[server], old.generation == generation else { return .unknown }
        guard let nextLookupAt = old.nextLookupAt else {
            return old.until > now ? .fresh(old.addresses) : .unknown
        }
        guard !isTooOld(old, at: now) else { return .unknown }
        let needsLookup = nextLookupAt <= now
        if needsLookup { known[server]?.nextLookupAt = now + NameTimes.retryInterval }
        return .stale(old.addresses, needsLookup: needsLookup)
    }

    private func isTooOld(_ known: Known, at now: Int64) -> Bool { known.until + NameTimes.longestStale <= now }

    mutating func forget(at now: Int64) {
        generation += 1
        known = known.filter { !isTooOld($0.value, at: now) }
    }

    /// Remembers an answer, unless all names were forgotten since the question.
    /// - Parameters:
    ///   - asked: the generation at the time of the question.
    ///   - now: when the answer came.
    ///   - longest: the nanoseconds for which an answer is used; fewer if the name servers say so.
    mutating func settle(
        _ answer: Resolver.Answer, of server: UpstreamServer.Location, asked: Int, at now: Int64, longest: Int64
    ) -> Settled {
        let isCurrent = asked == generation
        let old = known[server]
        switch answer {
        case .success(let found):
            if isCurrent {
                let time = NameTimes.use(of: found.timeToLive, longest: longest)
                known[server] = Known(addresses: found.addresses, until: now + time, generation: asked)
            }
            let isBack = isCurrent && old?.nextLookupAt != nil
            return Settled(answer: .success(found.addresses), news: isBack ? .isBack : nil)
        case .failure(.notFound):
            // The addresses of a name that no longer exists must not be used when no name server can be reached later.
            if let old, old.generation <= asked { known[server] = nil }
            return Settled(answer: .failure(.notFound))
        case .failure(let error):
            guard let old, !isTooOld(old, at: now) else { return Settled(answer: .failure(error)) }
            // Otherwise each connection would look the name up again, and wait as long.
            if isCurrent {
                known[server]?.generation = asked
                known[server]?.nextLookupAt = now + NameTimes.retryInterval
            }
            let isNews = isCurrent && old.nextLookupAt == nil
            return Settled(answer: .success(old.addresses), news: isNews ? .isStale(error) : nil)
        }
    }
}

/// An event of a name whose addresses are known.
package enum NameNews: Sendable, Equatable {
    /// The name cannot be looked up any more: its addresses are used all the same. Reported once, until the name is
    /// back.
    case isStale(ResolveError)
    case isBack
}
