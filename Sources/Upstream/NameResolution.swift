import Bytes
public import Coalescing
public import Libevent
import Telemetry

/// A loop is a callback queue: whoever waits is called back on the loop where it lives.
extension LoopHandle: CallbackQueue {}

/// The addresses of origins' names, shared by all loops: remembered for a while, and looked up once however many ask.
///
/// Every look-up is a `CoalescibleOperation`; the loop that asks first runs it, the others join.
public final class NameResolution: Sendable {
    /// A look-up begun before `forget` is not joined by those who ask after it.
    private struct Question: Hashable, Sendable {
        let server: UpstreamServer
        let generation: Int
    }

    private let inFlight: OperationQueueManager<Question>
    private let names = Guarded(KnownNames())

    /// Knows no name yet. One for all loops.
    public init() {
        inFlight = OperationQueueManager()
    }

    /// Names are looked up anew from now on. Where the name servers cannot be asked, what is known is still used, for
    /// as long as it would have been. Any thread.
    public func forget(at now: Int64) {
        names.withLock { $0.forget(at: now) }
    }

    /// - Parameter timeToLive: nanoseconds an answer is used for.
    func addresses(
        of server: UpstreamServer, timeToLive: Int64, on resolver: Resolver,
        completion: @escaping (Result<[SocketAddress], UpstreamError>) -> Void
    ) {
        let host: String
        let port: UInt16
        switch server {
        case .tcp(let name, let number): (host, port) = (name, number)
        case .unix(let path): return completion(.success([.unix(path: path)]))
        }
        let (known, generation) = names.withLock { ($0.addresses(of: server, at: resolver.loop.now), $0.generation) }
        if let known { return completion(.success(known)) }
        let question = Question(server: server, generation: generation)
        let bound = LoopBound(completion, on: resolver.loop)
        let waiter = Waiter<[SocketAddress]>(on: resolver.loop.handle) { result in
            bound.value(result.mapError { UpstreamError(.resolve, detail: "\(host): \(Self.reason($0))") })
        }
        let resolverBox = LoopBound(resolver, on: resolver.loop)
        _ = inFlight.enqueue(question, waiter: waiter) {
            ResolveOperation(host, port: port, resolver: resolverBox) { [self] answer, now in
                names.withLock { $0.settle(answer, of: server, asked: generation, at: now, timeToLive: timeToLive) }
            }
        }
    }

    private static func reason(_ error: OperationError) -> String {
        if case .failed(let failure as ResolveError) = error { failure.description } else { "\(error.name)" }
    }
}

/// One look-up of a name, on the loop that asked first.
final class ResolveOperation: CoalescibleOperation<[SocketAddress]> {
    private nonisolated let host: String
    private nonisolated let port: UInt16
    private nonisolated let resolver: LoopBound<Resolver>
    /// Takes the resolver's answer and its time; gives the answer to finish with.
    private nonisolated let settle: @Sendable (Resolver.Answer, Int64) -> Resolver.Answer

    nonisolated init(
        _ host: String, port: UInt16, resolver: LoopBound<Resolver>,
        settle: @escaping @Sendable (Resolver.Answer, Int64) -> Resolver.Answer
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
