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
        var generation: Int
    }

    private struct Memory {
        /// How often all was forgotten.
        var generation = 0
        /// Bounded by the number of servers in the configurations of a time to live. Those of earlier generations are for when nobody can be asked.
        var known: [UpstreamServer: Known] = [:]
    }

    /// A caller that asks after all was forgotten does not join one that asked before.
    private struct Question: Hashable, Sendable {
        let server: UpstreamServer
        let generation: Int
    }

    private let inFlight: OperationQueueManager<Question>
    private let memory = Guarded(Memory())

    /// Knows no name yet. One for all loops.
    public init() {
        inFlight = OperationQueueManager()
    }

    /// Names are looked up anew from now on. What is known is still used, for as long as it would have been, where the name servers cannot be asked.
    /// Any thread.
    public func forget(at now: Int64) {
        memory.withLock { memory in
            memory.generation += 1
            memory.known = memory.known.filter { $0.value.until > now }
        }
    }

    /// - Parameter timeToLive: nanoseconds an answer is used for.
    func addresses(
        of server: UpstreamServer, timeToLive: Int64, on resolver: Resolver,
        completion: @escaping (Result<[SocketAddress], UpstreamError>) -> Void
    ) {
        let now = resolver.loop.now
        let (known, generation) = memory.withLock { ($0.known[server], $0.generation) }
        if let known, known.until > now, known.generation == generation {
            completion(.success(known.addresses))
            return
        }
        let question = Question(server: server, generation: generation)
        let bound = LoopBound(completion, on: resolver.loop)
        let waiter = Waiter<[SocketAddress]>(on: resolver.loop.handle) { result in
            bound.value(result.mapError { UpstreamError(.resolve, detail: "\(server.host): \($0)") })
        }
        let resolverBox = LoopBound(resolver, on: resolver.loop)
        _ = inFlight.enqueue(question, waiter: waiter) {
            LookupOperation(question, server: server, resolver: resolverBox) { [self] answer in
                settle(answer, to: question, at: now, timeToLive: timeToLive)
            }
        }
    }

    /// Remembers an answer, unless all was forgotten since the question.
    /// - Returns: the answer, or what was known before if nobody could say.
    private func settle(_ answer: Resolver.Answer, to question: Question, at now: Int64, timeToLive: Int64) -> Resolver.Answer {
        memory.withLock { memory in
            let isCurrent = question.generation == memory.generation
            switch answer {
            case .success(let addresses):
                if isCurrent {
                    memory.known[question.server] = Known(addresses: addresses, until: now + timeToLive, generation: question.generation)
                }
            case .failure(.notFound): break
            case .failure:
                guard let old = memory.known[question.server], old.until > now else { break }
                // Not asked again, with the time that it takes, for each connection.
                if isCurrent { memory.known[question.server]?.generation = question.generation }
                return .success(old.addresses)
            }
            return answer
        }
    }
}

/// One look-up of a name, on the loop that asked first.
final class LookupOperation: CoalescibleOperation<[SocketAddress]> {
    private nonisolated let server: UpstreamServer
    private nonisolated let resolver: LoopBound<Resolver>
    private nonisolated let settle: @Sendable (Resolver.Answer) -> Resolver.Answer

    nonisolated init(
        _ question: some Hashable & Sendable, server: UpstreamServer, resolver: LoopBound<Resolver>,
        settle: @escaping @Sendable (Resolver.Answer) -> Resolver.Answer
    ) {
        self.server = server
        self.resolver = resolver
        self.settle = settle
        super.init(identifier: question)
    }

    nonisolated override func execute() {
        resolver.handle.post { [self] in
            resolver.value.resolve(server.host, port: server.port) { [self] answer in
                finish(settle(answer).mapError { $0 as any Error })
            }
        }
    }
}
