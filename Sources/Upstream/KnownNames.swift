import Libevent

/// What the addresses of origins' names were when they were asked for. A value; times are monotonic nanoseconds.
///
/// All may be forgotten, and is then asked for anew. What was known before is still there for when nobody can be asked.
struct KnownNames: Sendable {
    private struct Known: Sendable {
        let addresses: [SocketAddress]
        let until: Int64
        var generation: Int
    }

    /// How often all was forgotten.
    private(set) var generation = 0
    /// Bounded by the number of servers in the configurations of a time to live.
    private var known: [UpstreamServer: Known] = [:]

    /// `nil`: to be asked for.
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
    ///   - asked: the generation when it was asked for, which was at `now`.
    ///   - timeToLive: nanoseconds an answer is used for.
    /// - Returns: the answer, or what was known before if nobody could say.
    mutating func settle(_ answer: Resolver.Answer, of server: UpstreamServer, asked: Int, at now: Int64, timeToLive: Int64) -> Resolver.Answer {
        let isCurrent = asked == generation
        switch answer {
        case .success(let addresses):
            if isCurrent { known[server] = Known(addresses: addresses, until: now + timeToLive, generation: asked) }
        case .failure(.notFound):
            // Nor may it come back when nobody can be asked.
            if let old = known[server], old.generation <= asked { known[server] = nil }
        case .failure:
            guard let old = known[server], old.until > now else { break }
            // Not asked again, with the time that it takes, for each connection.
            if isCurrent { known[server]?.generation = asked }
            return .success(old.addresses)
        }
        return answer
    }
}
