public import Libevent

/// What origins' names last resolved to. A value; times are monotonic nanoseconds.
///
/// ```
/// unknown ─answer→ fresh ─its time is over, all forgotten→ expired ─answer→ fresh
///                              expired ─look-up fails→ stale ─answer→ fresh
///                              any ─there is no such name, longestStale is over→ unknown
/// ```
/// The addresses of a stale name are used (RFC 8767), and it is asked for again beside the requests.
struct KnownNames: Sendable {
    private struct Known: Sendable {
        let addresses: [SocketAddress]
        /// Until when it is fresh.
        let until: Int64
        /// A generation before the present one: it is to be looked up anew.
        var generation: Int
        /// When it is asked for again; set while it is stale.
        var asksAgainAt: Int64?
    }

    /// What is known of a name.
    enum Knowledge: Equatable {
        case fresh([SocketAddress])
        /// `asksAgain`: whoever learns this looks it up, and waits for nothing.
        case stale([SocketAddress], asksAgain: Bool)
        /// To be looked up.
        case unknown
    }

    /// What an answer makes of a name.
    struct Settled {
        /// For who asked: what was known before, if the look-up failed.
        let answer: Result<[SocketAddress], ResolveError>
        var news: NameNews?
    }

    /// How often all was forgotten.
    private(set) var generation = 0
    /// Bounded by the number of servers in all configurations loaded within `longestStale`.
    private var known: [UpstreamServer: Known] = [:]

    /// - Parameter now: not before that of an earlier call.
    mutating func knowledge(of server: UpstreamServer, at now: Int64) -> Knowledge {
        guard let old = known[server], old.generation == generation else { return .unknown }
        guard let asksAgainAt = old.asksAgainAt else {
            return old.until > now ? .fresh(old.addresses) : .unknown
        }
        guard !isTooOld(old, at: now) else { return .unknown }
        let asksAgain = asksAgainAt <= now
        if asksAgain { known[server]?.asksAgainAt = now + NameTimes.retryInterval }
        return .stale(old.addresses, asksAgain: asksAgain)
    }

    private func isTooOld(_ known: Known, at now: Int64) -> Bool { known.until + NameTimes.longestStale <= now }

    mutating func forget(at now: Int64) {
        generation += 1
        known = known.filter { !isTooOld($0.value, at: now) }
    }

    /// Remembers an answer, unless all was forgotten since the question.
    /// - Parameters:
    ///   - asked: the generation when it was asked for.
    ///   - now: when the answer came.
    ///   - longest: nanoseconds that an answer is used for; less, if the name servers say so.
    mutating func settle(
        _ answer: Resolver.Answer, of server: UpstreamServer, asked: Int, at now: Int64, longest: Int64
    ) -> Settled {
        let isCurrent = asked == generation
        let old = known[server]
        switch answer {
        case .success(let found):
            if isCurrent {
                let time = NameTimes.use(of: found.timeToLive, longest: longest)
                known[server] = Known(addresses: found.addresses, until: now + time, generation: asked)
            }
            let isBack = isCurrent && old?.asksAgainAt != nil
            return Settled(answer: .success(found.addresses), news: isBack ? .isBack : nil)
        case .failure(.notFound):
            // It must not come back when no name server can be asked.
            if let old, old.generation <= asked { known[server] = nil }
            return Settled(answer: .failure(.notFound))
        case .failure(let error):
            guard let old, !isTooOld(old, at: now) else { return Settled(answer: .failure(error)) }
            // Otherwise each connection would ask again, and wait as long.
            if isCurrent {
                known[server]?.generation = asked
                known[server]?.asksAgainAt = now + NameTimes.retryInterval
            }
            let isNews = isCurrent && old.asksAgainAt == nil
            return Settled(answer: .success(old.addresses), news: isNews ? .isStale(error) : nil)
        }
    }
}

/// What became of a name whose addresses are known.
public enum NameNews: Sendable, Equatable {
    /// It cannot be looked up any more: its addresses are used all the same. Told once, until it is back.
    case isStale(ResolveError)
    case isBack
}
