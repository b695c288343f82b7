public import Coalescing
public import Libevent
public import Logging
public import Storage
import Synchronization
public import Telemetry
public import Upstream
import HTTPSemantics
import Bytes

/// The proxy as a whole: starts the workers, tells them of reloads, and ends them.
///
/// Belongs to the loop it is made on, the *control loop* of the main thread, which also has the signals and the admin listener.
///
/// ```
/// new ─start→ starting ─all accept→ running ─drain→ draining ─idle, or time→ stopped
///                 └─an address is not to be had→ stopped
/// ```
public final class ProxyServer {
    /// Why it does not start.
    public enum StartError: Error, CustomStringConvertible {
        case listen(ListenError)
        case system(SystemError)
        case accessLog(SystemError, path: String)

        public var description: String {
            switch self {
            case .listen(let error): "\(error)"
            case .system(let error): "\(error)"
            case .accessLog(let error, let path): "the access log \(path) cannot be opened: \(error.message)"
            }
        }
    }

    private enum State { case new, starting, running, draining, stopped }

    private struct Member {
        let thread: LoopThread
        let metrics: LoopMetrics
    }

    public let shared: SharedState
    private let control: EventLoop
    private let log: Logger
    private var settings: ProxySettings
    private var runtime: Runtime
    private let accessLogSettings: AccessLogSettings
    private var accessLog: AccessLog?
    private var rings: [LogRing] = []
    private var members: [Member] = []
    private var workers: [WorkerHandle] = []
    private var state = State.new
    private var addresses: [SocketAddress] = []

    public init(
        _ settings: ProxySettings, upstreams: [UpstreamSettings], storage: StorageSettings, accessLog: AccessLogSettings,
        on control: EventLoop, log: Logger
    ) {
        self.settings = settings
        self.control = control
        self.log = log
        accessLogSettings = accessLog
        shared = SharedState(storage, log: log)
        runtime = Runtime(settings, upstreams: upstreams)
    }

    // MARK: - Starting

    /// Starts the workers; `ready` is called on the control loop with the addresses that accept, or with the reason they do not.
    public func start(ready: @escaping (Result<[SocketAddress], StartError>) -> Void) {
        precondition(state == .new, "a server starts once")
        state = .starting
        do throws(StartError) {
            addresses = settings.listeners
            try probe(addresses)
            let count = settings.workers > 0 ? settings.workers : processorCount()
            try openAccessLog(workers: count)
            try startWorker(0, of: count, ready)
        } catch {
            state = .stopped
            ready(.failure(error))
        }
    }

    /// With a shared port the kernel would let a second program in beside us.
    private func probe(_ addresses: [SocketAddress]) throws(StartError) {
        for address in addresses {
            do throws(ListenError) {
                try Listener.probe(address)
            } catch {
                throw .listen(error)
            }
        }
    }

    private func openAccessLog(workers count: Int) throws(StartError) {
        guard accessLogSettings.target != .off else { return }
        rings = (0..<count).map { _ in LogRing(capacity: accessLogSettings.ringCapacity) }
        do throws(SystemError) {
            accessLog = try AccessLog(accessLogSettings, rings: rings, log: log)
        } catch {
            throw .accessLog(error, path: accessLogSettings.path)
        }
    }

    /// One after the other: the first one's choice of ports is everybody's.
    private func startWorker(
        _ index: Int, of count: Int, _ ready: @escaping (Result<[SocketAddress], StartError>) -> Void
    ) throws(StartError) {
        let metrics = LoopMetrics()
        let ring = index < rings.count ? rings[index] : nil
        let bound = LoopBound({ [unowned self] (result: Result<(WorkerHandle, [SocketAddress]), StartError>) in
            workerStarted(index, of: count, result, ready)
        }, on: control)
        let (shared, runtime, addresses, accessLog) = (shared, runtime, addresses, accessLog)
        do throws(SystemError) {
            let thread = try LoopThread(name: "worker-\(index)") { loop in
                let result = Self.makeWorker(
                    index, on: loop, addresses, shared: shared, runtime: runtime, metrics: metrics, ring: ring
                ) { accessLog?.drainSoon() }
                bound.handle.post { bound.value(result) }
                guard case .success(let (handle, _)) = result else { return }
                loop.run()
                handle.worker.value.cut()
            }
            members.append(Member(thread: thread, metrics: metrics))
        } catch {
            throw .system(error)
        }
    }

    private static func makeWorker(
        _ index: Int, on loop: EventLoop, _ addresses: [SocketAddress], shared: SharedState, runtime: Runtime, metrics: LoopMetrics,
        ring: LogRing?, logMark: @escaping @Sendable () -> Void
    ) -> Result<(WorkerHandle, [SocketAddress]), StartError> {
        let worker: Worker
        do throws(SystemError) {
            worker = try Worker(
                index: index, on: loop, shared: shared, runtime: runtime, metrics: metrics, ring: ring, logMark: logMark)
        } catch {
            return .failure(.system(error))
        }
        do throws(ListenError) {
            let bound = try addresses.map { address throws(ListenError) in try worker.listen(at: address) }
            return .success((WorkerHandle(worker: LoopBound(worker, on: loop)), bound))
        } catch {
            return .failure(.listen(error))
        }
    }

    private func workerStarted(
        _ index: Int, of count: Int, _ result: Result<(WorkerHandle, [SocketAddress]), StartError>,
        _ ready: @escaping (Result<[SocketAddress], StartError>) -> Void
    ) {
        guard state == .starting else { return }
        switch result {
        case .success(let (worker, bound)):
            workers.append(worker)
            addresses = bound
            guard index + 1 == count else {
                do throws(StartError) {
                    try startWorker(index + 1, of: count, ready)
                } catch {
                    stop()
                    ready(.failure(error))
                }
                return
            }
            state = .running
            ready(.success(addresses))
        case .failure(let error):
            stop()
            ready(.failure(error))
        }
    }

    // MARK: - Running

    /// Every loop takes the new settings for its next requests; connections stay. Listeners, workers, storage and the access log keep
    /// what they were started with.
    public func reload(_ new: ProxySettings, upstreams: [UpstreamSettings]) {
        guard state == .running else { return }
        settings = new
        runtime = Runtime(new, upstreams: upstreams, previous: runtime)
        let runtime = runtime
        for worker in workers { worker.post { $0.apply(runtime) } }
    }

    /// Opens the access log again, after it was rotated away.
    public func reopenLogs() { accessLog?.reopen() }

    /// The counters of all loops together.
    public var counters: CounterValues { CounterValues(sumOf: members.map(\.metrics)) }

    public var workerCount: Int { workers.count }
    public var listenAddresses: [SocketAddress] { addresses }
    public var accessLogFamilies: [MetricFamily] { accessLog?.status.families() ?? [] }
    public var isDraining: Bool { state == .draining }
    /// Whether all listeners accept.
    public var isReady: Bool { state == .running }

    /// What each upstream has done and has in flight.
    public var upstreamSnapshots: [(name: String, operations: OperationQueueSnapshot)] {
        runtime.origins.map { ($0.settings.name, $0.fetches.snapshot) }
    }

    /// The fetches in flight at this moment.
    public var fetchesInFlight: [FetchDescription] {
        runtime.origins.flatMap { origin in
            origin.fetches.operations.compactMap { operation in
                (operation as? FetchOperation).map { FetchDescription($0, upstream: origin.settings.name) }
            }
        }
    }

    /// Asks every loop for its latencies; `completion` is called on the control loop with all of them merged.
    public func latencies(_ completion: @escaping (LatencySnapshot) -> Void) {
        let gathered = LoopBound(Gathering(count: workers.count, completion), on: control)
        for worker in workers {
            worker.post { worker in
                let snapshot = worker.latency.snapshot()
                gathered.handle.post { gathered.value.add(snapshot) }
            }
        }
        if workers.isEmpty { completion(LatencySnapshot()) }
    }

    private final class Gathering {
        private var merged = LatencySnapshot()
        private var missing: Int
        private let completion: (LatencySnapshot) -> Void

        init(count: Int, _ completion: @escaping (LatencySnapshot) -> Void) {
            missing = count
            self.completion = completion
        }

        func add(_ snapshot: LatencySnapshot) {
            merged.merge(snapshot)
            missing -= 1
            if missing == 0 { completion(merged) }
        }
    }

    // MARK: - Purging

    /// Removes what is stored under a URL, with all its variants.
    /// - Returns: how many responses; `nil` when `url` is no absolute `http` URL.
    public func purge(url: String) -> Int? {
        guard let request = ParsedURL(url) else { return nil }
        let fields = request.fields
        guard let route = runtime.route(request.head, fields.view) else { return 0 }
        let writer = KeyWriter(hash: shared.keyHash)
        request.write(to: writer, route.key)
        let key = writer.key()
        let removed = shared.store.remove(hash: key.hash, key: key.bytes.span)
        route.origin.closeFetches(of: key)
        return removed
    }

    /// Removes everything that is stored; what is on its way goes on for those who wait, and is not stored.
    /// - Returns: how many responses.
    public func purgeAll() -> Int {
        let removed = shared.store.removeAll()
        for origin in runtime.origins {
            for case let fetch as FetchOperation in origin.fetches.operations { fetch.close() }
        }
        return removed
    }

    // MARK: - Ending

    /// Accepts no more, lets requests under way finish, and calls `completion` on the control loop once they have, or after the
    /// drain timeout.
    public func drain(_ completion: @escaping () -> Void) {
        guard state == .running else { return completion() }
        state = .draining
        let idle = LoopBound(Idle(count: workers.count, completion), on: control)
        for worker in workers {
            worker.post { $0.drain { idle.handle.post { idle.value.oneLess() } } }
        }
        control.schedule(after: settings.drainTimeout.nanoseconds) { idle.value.timeIsUp() }
    }

    private final class Idle {
        private var missing: Int
        private var completion: (() -> Void)?

        init(count: Int, _ completion: @escaping () -> Void) {
            missing = count
            self.completion = completion
        }

        func oneLess() {
            missing -= 1
            if missing == 0 { timeIsUp() }
        }

        func timeIsUp() {
            completion?()
            completion = nil
        }
    }

    /// Ends everything now and waits for the threads.
    public func stop() {
        state = .stopped
        for origin in runtime.origins { origin.fetches.cancelAll() }
        for member in members { member.thread.stop() }
        for member in members { member.thread.join() }
        members.removeAll()
        workers.removeAll()
        accessLog?.finish()
    }
}

/// A worker as seen from the control loop.
final class WorkerHandle: Sendable {
    let worker: LoopBound<Worker>

    init(worker: LoopBound<Worker>) { self.worker = worker }

    func post(_ job: @escaping @Sendable (Worker) -> Void) {
        worker.handle.post { [worker] in job(worker.value) }
    }
}

/// A fetch in flight, for people.
public struct FetchDescription: Sendable {
    public let number: UInt64
    public let upstream: String
    public let key: String
    public let phase: String
    public let waiters: Int

    init(_ operation: FetchOperation, upstream: String) {
        number = operation.number
        self.upstream = upstream
        key = String(operation.key.primary.bytes)
        phase = operation.value == nil ? "\(operation.phase)" : "streaming"
        waiters = operation.waiterCount
    }
}
