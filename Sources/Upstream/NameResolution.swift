import Bytes
public import Coalescing
package import Libevent
import Telemetry

/// A loop is a callback queue: each waiter is called back on its own loop.
extension LoopHandle: CallbackQueue {}

/// The addresses of origins' names, shared by all loops. They are remembered for a while. However many callers ask,
/// each name is looked up once.
///
/// Every look-up is a `CoalescibleOperation`. The loop that asks first runs it; the others join.
package final class NameResolution: Sendable {
    /// Callers that ask after `forget` do not join a look-up begun before it.
    private struct Question: Hashable, Sendable {
        // Not the whole server: its weight does not matter for its addresses.
        let server: UpstreamServer.Location
        let generation: Int
    }

    private let inFlight: OperationQueueManager<Question>
    private let names = Guarded(KnownNames())
    /// Called on the loop that asked.
    private let onNews: @Sendable (_ host: String, NameNews) -> Void

    /// Knows no name at first. All loops share one object.
    package init(onNews: @escaping @Sendable (_ host: String, NameNews) -> Void = { _, _ in }) {
        inFlight = OperationQueueManager()
        self.onNews = onNews
    }

    /// Makes all names be looked up anew. If the name servers cannot be reached, the known addresses are still used.
    /// Any thread.
    package func forget(at now: Int64) {
        names.withLock { $0.forget(at: now) }
    }

    /// - Parameter longest: the nanoseconds for which an answer is used; fewer if the name servers say so.
    func addresses(
        of server: UpstreamServer, longest: Int64, on resolver: Resolver,
        completion: @escaping (Result<[SocketAddress], UpstreamError>) -> Void
    ) {
        let host: String
        let port: UInt16
        switch server.location {
        case .tcp(let name, let number): (host, port) = (name, number)
        case .unix(let path): return completion(.success([.unix(path: path)]))
        }
        let now = resolver.loop.now
        let (known, generation) = names.withLock { ($0.knowledge(of: server.location, at: now), $0.generation) }
        var waiter: Waiter<[SocketAddress]>?
        switch known {
        case .fresh(let addresses), .stale(let addresses, needsLookup: false): return completion(.success(addresses))
        case .stale(let addresses, needsLookup: true): completion(.success(addresses))
        case .unknown:
            let bound = LoopBound(completion, on: resolver.loop)
            waiter = Waiter<[SocketAddress]>(on: resolver.loop.handle) { result in
                bound.value(result.mapError { UpstreamError(.resolve, detail: "\(host): \(Self.reason($0))") })
            }
        }
        let resolverBox = LoopBound(resolver, on: resolver.loop)
        _ = inFlight.enqueue(Question(server: server.location, generation: generation), waiter: waiter) {
            ResolveOperation(host, port: port, resolver: resolverBox) { [self] answer, now in
                let settled = names.withLock {
                    $0.settle(answer, of: server.location, asked: generation, at: now, longest: longest)
                }
                if let news = settled.news { onNews(host, news) }
                return settled.answer
            }
        }
    }

    private static func reason(_ error: OperationError) -> String {
        if case .failed(let failure as ResolveError) = error { failure.description } else { "\(error.name)" }
    }
}

/// One look-up of a name, on the loop that asked first.
final class ResolveOperation: CoalescibleOperation<[SocketAddress]>, @unchecked Sendable {
    private nonisolated let host: String
    private nonisolated let port: UInt16
    private nonisolated let resolver: LoopBound<Resolver>
    /// Notes the resolver's answer and its time, and returns the answer for the waiters.
    private nonisolated let settle: @Sendable (Resolver.Answer, Int64) -> Result<[SocketAddress], ResolveError>

    nonisolated init(
        _ host: String, port: UInt16, resolver: LoopBound<Resolver>,
        settle: @escaping @Sendable (Resolver.Answer, Int64) -> Result<[SocketAddress], ResolveError>
    ) {
        self.host = host
        self.port = port
        self.resolver = resolver
        self.settle = settle
        super.init()
    }

    nonisolated override func execute() {
        resolver.handle.post { [self] in
            resolver.value.resolve(host, port: port) { [self] answer in
                finish(settle(answer, resolver.value.loop.now).mapError { $0 as any Error })
            }
        }
    }
}
