import Libevent
import Testing

@testable import Upstream

@Suite struct KnownNamesTests {
    private let server = UpstreamServer.Location.tcp(host: "origin.test", port: 80)
    private let address = SocketAddress.ipv4(.loopback, port: 80)

    /// The longest use of an answer.
    private let longest: Int64 = 30_000_000_000
    private let second: Int64 = 1_000_000_000

    private var found: Resolver.Answer { .success(Resolver.Found([address])) }

    /// One look-up at a time, each of them after all was forgotten; all happens at 1.
    private func outcomes(_ answers: [Resolver.Answer]) -> [Result<[SocketAddress], ResolveError>] {
        var names = KnownNames()
        return answers.map { answer in
            names.forget(at: 1)
            return names.settle(answer, of: server, asked: names.generation, at: 1, longest: longest).answer
        }
    }

    @Test func `an address that was denied does not come back when no name server answers`() {
        let outcomes = self.outcomes([found, .failure(.timedOut), .failure(.notFound), .failure(.timedOut)])
        #expect(outcomes == [.success([address]), .success([address]), .failure(.notFound), .failure(.timedOut)])
    }

    @Test func `a denial from before a reset does not undo a later answer`() {
        var names = KnownNames()
        names.forget(at: 1)
        _ = names.settle(found, of: server, asked: 1, at: 1, longest: longest)
        _ = names.settle(.failure(.notFound), of: server, asked: 0, at: 1, longest: longest)
        let known = names.knowledge(of: server, at: 2)
        #expect(known == .fresh([address]))
    }

    @Test(
        arguments: [
            (nil, 30), (0, 1), (500, 1), (5_000, 5), (30_000, 30), (86_400_000, 30),
        ] as [(milliseconds: Int64?, seconds: Int64)])
    func `an answer holds for its time to live, from a second to the operator's limit`(
        milliseconds: Int64?, seconds: Int64
    ) {
        var names = KnownNames()
        let answer = Resolver.Found([address], timeToLive: milliseconds.map { $0 * 1_000_000 })
        _ = names.settle(.success(answer), of: server, asked: 0, at: 1_000, longest: longest)
        let (last, after) = (1_000 + seconds * second - 1, 1_000 + seconds * second)
        #expect(names.knowledge(of: server, at: last) == .fresh([address]))
        #expect(names.knowledge(of: server, at: after) == .unknown)
    }

    @Test func `without a name server, old addresses are used, and one request asks again now and then`() {
        var names = KnownNames()
        _ = names.settle(found, of: server, asked: 0, at: 0, longest: longest)
        #expect(names.knowledge(of: server, at: 40 * second) == .unknown)
        let failed = names.settle(.failure(.timedOut), of: server, asked: 0, at: 45 * second, longest: longest)
        #expect(failed.answer == .success([address]) && failed.news == .isStale(.timedOut))
        #expect(names.knowledge(of: server, at: 49 * second) == .stale([address], needsLookup: false))
        #expect(names.knowledge(of: server, at: 50 * second) == .stale([address], needsLookup: true))
        #expect(names.knowledge(of: server, at: 51 * second) == .stale([address], needsLookup: false))
        let again = names.settle(.failure(.serverFailed), of: server, asked: 0, at: 52 * second, longest: longest)
        #expect(again.answer == .success([address]) && again.news == nil)
        let back = names.settle(found, of: server, asked: 0, at: 58 * second, longest: longest)
        #expect(back.news == .isBack)
        #expect(names.knowledge(of: server, at: 59 * second) == .fresh([address]))
    }

    @Test func `old addresses are not used for ever`() {
        var names = KnownNames()
        let day = NameTimes.longestStale
        _ = names.settle(found, of: server, asked: 0, at: 0, longest: longest)
        _ = names.settle(.failure(.timedOut), of: server, asked: 0, at: longest, longest: longest)
        #expect(names.knowledge(of: server, at: longest + day - 1) != .unknown)
        #expect(names.knowledge(of: server, at: longest + day) == .unknown)
        let end = names.settle(.failure(.timedOut), of: server, asked: 0, at: longest + day, longest: longest)
        #expect(end.answer == .failure(.timedOut))
    }
}
