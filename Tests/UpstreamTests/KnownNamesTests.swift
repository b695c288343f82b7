import Libevent
import Testing

@testable import Upstream

@Suite struct KnownNamesTests {
    private let server = UpstreamServer(host: "origin.test", port: 80)
    private let address = SocketAddress.ipv4(.loopback, port: 80)

    /// One look-up at a time, each of them after all was forgotten; times to live are 100, and all happens at 1.
    private func outcomes(_ answers: [Resolver.Answer]) -> [Resolver.Answer] {
        var names = KnownNames()
        return answers.map { answer in
            names.forget(at: 1)
            return names.settle(answer, of: server, asked: names.generation, at: 1, timeToLive: 100)
        }
    }

    @Test func `an address that was denied does not come back when nobody can be asked`() {
        let found = outcomes([.success([address]), .failure(.timedOut), .failure(.notFound), .failure(.timedOut)])
        #expect(found == [.success([address]), .success([address]), .failure(.notFound), .failure(.timedOut)])
    }

    @Test func `a denial from before all was forgotten does not undo a later answer`() {
        var names = KnownNames()
        names.forget(at: 1)
        _ = names.settle(.success([address]), of: server, asked: 1, at: 1, timeToLive: 100)
        _ = names.settle(.failure(.notFound), of: server, asked: 0, at: 1, timeToLive: 100)
        let known = names.addresses(of: server, at: 2)
        #expect(known == [address])
    }

    @Test func `an answer holds from when it came, for its time`() {
        var names = KnownNames()
        _ = names.settle(.success([address]), of: server, asked: 0, at: 1_000, timeToLive: 100)
        #expect(names.addresses(of: server, at: 1_099) == [address])
        #expect(names.addresses(of: server, at: 1_100) == nil)
    }
}
