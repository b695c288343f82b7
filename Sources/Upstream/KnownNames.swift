import Libevent

/// What origins' names last resolved to. A value; times are monotonic nanoseconds.
///
/// All may be forgotten, and is then looked up anew. The old answers are kept for when no name server can be asked.
struct KnownNames: Sendable {
    private struct Known: Sendable {
        let addresses: [SocketAddress]
        let until: Int64
        var generation: Int
    }

    /// How often all was forgotten.
    private(set) var generation = 0
    /// Bounded by the number of servers in all configurations loaded within one TTL.
    private var known: [UpstreamServer: Known] = [:]

    /// `nil`: to be looked up.
    func addresses(of server: UpstreamServer, at now: Int64) -> [SocketAddress]? {
        guard let known = known[server], known.until > now, known.generation == generation else { return nil }
        return known.addresses
    }

    mutating func forget(at now: Int64) {
        generation += 1
        known = known.filter { $0.value.until > now }
    }

    /// Remembers an answer, unless all was forgotten since the question.
    /// - Parameters:
    ///   - asked: the generation when it was asked for.
    ///   - now: when the answer came.
    ///   - timeToLive: nanoseconds an answer is used for.
    /// - Returns: the answer, or what was known before if there was none.
    mutating func settle(
        _ answer: Resolver.Answer, of server: UpstreamServer, asked: Int, at now: Int64, timeToLive: Int64
    ) -> Resolver.Answer {
        let isCurrent = asked == generation
        switch answer {
        case .success(let addresses):
            if isCurrent { known[server] = Known(addresses: addresses, until: now + timeToLive, generation: asked) }
        case .failure(.notFound):
            // It must not come back when no name server can be asked.
            if let old = known[server], old.generation <= asked { known[server] = nil }
        case .failure:
            guard let old = known[server], old.until > now else { break }
            // Otherwise each connection would ask again, and wait as long.
            if isCurrent { known[server]?.generation = asked }
            return .success(old.addresses)
        }
        return answer
    }
}
