public import Coalescing
public import Libevent
import Bytes
import Telemetry

/// A loop is a callback queue: whoever waits is called back on the loop where it lives.
extension LoopHandle: CallbackQueue {}

/// The addresses of origins' names, shared by all loops: remembered for a while, and looked up once however many ask.
///
/// Every look-up is a `CoalescibleOperation` of its own; the loop that asks first runs it, the others join.
public final class NameResolution: Sendable {
    private struct Known: Sendable {
        let addresses: [SocketAddress]
        /// Monotonic nanoseconds.
        let until: Int64
    }

    private let inFlight: OperationQueueManager<UpstreamServer>
    /// Bounded by the number of servers in the configuration.
    private let known = Guarded<[UpstreamServer: Known]>([:])

    /// Knows no name yet. One for all loops.
    public init() {
        inFlight = OperationQueueManager()
    }

    /// Names are looked up anew from now on. Any thread.
    public func forget() { known.withLock { $0 = [:] } }

    /// - Parameter timeToLive: nanoseconds an answer is used for.
    func addresses(
        of server: UpstreamServer, timeToLive: Int64, on resolver: Resolver,
        completion: @escaping (Result<[SocketAddress], UpstreamError>) -> Void
    ) {
        let now = resolver.loop.now
        if let known = known.withLock({ $0[server] }), known.until > now {
            completion(.success(known.addresses))
            return
        }
        let bound = LoopBound(completion, on: resolver.loop)
        let waiter = Waiter<[SocketAddress]>(on: resolver.loop.handle) { result in
            bound.value(result.mapError { UpstreamError(.resolve, detail: "\(server.host): \($0)") })
        }
        let resolverBox = LoopBound(resolver, on: resolver.loop)
        _ = inFlight.enqueue(server, waiter: waiter) {
            LookupOperation(server: server, resolver: resolverBox) { [self] addresses in
                known.withLock { $0[server] = Known(addresses: addresses, until: now + timeToLive) }
            }
        }
    }
}

/// One look-up of a name, on the loop that asked first.
final class LookupOperation: CoalescibleOperation<[SocketAddress]> {
    private nonisolated let server: UpstreamServer
    private nonisolated let resolver: LoopBound<Resolver>
    private nonisolated let remember: @Sendable ([SocketAddress]) -> Void

    nonisolated init(server: UpstreamServer, resolver: LoopBound<Resolver>, remember: @escaping @Sendable ([SocketAddress]) -> Void) {
        self.server = server
        self.resolver = resolver
        self.remember = remember
        super.init(identifier: server)
    }

    nonisolated override func execute() {
        resolver.handle.post { [self] in
            resolver.value.resolve(server.host, port: server.port) { [self] answer in
                if case .success(let addresses) = answer { remember(addresses) }
                finish(answer.mapError { $0 as any Error })
            }
        }
    }
}
