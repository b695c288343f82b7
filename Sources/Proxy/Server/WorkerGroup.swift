import Bytes
import Libevent
import Telemetry

/// The workers, as the control loop handles them: it starts them one after another, runs jobs on all of them, gathers
/// their answers, and ends them.
///
/// Owned by the server, confined to the control loop.
final class WorkerGroup {
    typealias Make = @Sendable (_ index: Int, _ loop: EventLoop, _ metrics: LoopMetrics) -> Worker
    /// A worker and the addresses at which it accepts.
    private typealias Accepting = Result<(LoopBound<Worker>, [SocketAddress]), ListenError>

    private struct Member {
        let thread: LoopThread
        let metrics: LoopMetrics
        /// `nil` until the worker accepts connections.
        var worker: LoopBound<Worker>?
    }

    private struct Start {
        let count: Int
        var targets: [ListenTarget]
        let make: Make
        let completion: (Result<[SocketAddress], ProxyServer.StartError>) -> Void
    }

    private let control: EventLoop
    private var members: [Member] = []
    /// Only while starting.
    private var start: Start?
    /// The addresses at which the workers accept, with the ports that the kernel chose.
    private(set) var addresses: [SocketAddress] = []

    init(control: EventLoop) { self.control = control }

    var count: Int { workers.count }
    /// The counters of all loops together.
    var counters: CounterValues { CounterValues(sumOf: members.map(\.metrics)) }

    private var workers: [LoopBound<Worker>] { members.compactMap(\.worker) }

    // MARK: - Starting

    /// Starts `count` workers that accept connections at `targets`.
    /// - Parameters:
    ///   - make: makes one worker; called on that worker's loop.
    ///   - completion: called on the control loop with the addresses that accept, or with an error; after an error,
    ///     `stop` ends the workers that were started.
    func start(
        _ count: Int, at targets: [ListenTarget], make: @escaping Make,
        completion: @escaping (Result<[SocketAddress], ProxyServer.StartError>) -> Void
    ) {
        start = Start(count: count, targets: targets, make: make, completion: completion)
        startNext()
    }

    /// Starts the next worker.
    private func startNext() {
        guard let start else { return }
        guard members.count < start.count else { return end(.success(addresses)) }
        let (index, make) = (members.count, start.make)
        // The thread takes the targets out of this box. The closure of the thread keeps its captures until the thread
        // ends, so a captured Unix socket would stay open as long.
        let targets = Guarded<[ListenTarget]?>(start.targets)
        let metrics = LoopMetrics()
        let report = LoopBound({ [weak self] (result: Accepting) in _ = self?.started(result) }, on: control)
        do throws(SystemError) {
            let thread = try LoopThread(name: "worker-\(index)") { loop in
                let worker = make(index, loop, metrics)
                let result = Accepting { () throws(ListenError) in
                    let targets = targets.withLock { $0.take() } ?? []
                    let bound = try targets.map { target throws(ListenError) in try worker.clients.listen(at: target) }
                    return (LoopBound(worker, on: loop), bound)
                }
                report.handle.post { report.value(result) }
                guard case .success = result else { return }
                loop.run()
                worker.cut()
            }
            members.append(Member(thread: thread, metrics: metrics))
        } catch {
            end(.failure(.system(error)))
        }
    }

    private func started(_ result: Accepting) {
        // `stop` may have been called meanwhile.
        guard let start, !members.isEmpty else { return }
        switch result {
        case .success(let (worker, bound)):
            members[members.count - 1].worker = worker
            addresses = bound
            // The next workers listen at the ports that the kernel chose for this one.
            self.start?.targets = zip(start.targets, bound).map { if case .port = $0 { .port($1) } else { $0 } }
            startNext()
        case .failure(let error):
            end(.failure(.listen(error)))
        }
    }

    private func end(_ result: Result<[SocketAddress], ProxyServer.StartError>) {
        start.take()?.completion(result)
    }

    // MARK: - Telling and asking

    /// Runs `job` on the loop of each worker.
    func post(_ job: @escaping @Sendable (Worker) -> Void) {
        for worker in workers { worker.handle.post { job(worker.value) } }
    }

    /// Calls `ask` for each worker on its loop, and gathers the answers.
    /// - Parameters:
    ///   - patience: how long to wait for the answers; `nil`: until all have arrived.
    ///   - completion: called once on the control loop, with the answers that arrived.
    func gather<Answer: Sendable>(
        within patience: Duration? = nil,
        _ ask: @escaping @Sendable (Worker, _ answer: @escaping @Sendable (Answer) -> Void) -> Void,
        _ completion: @escaping ([Answer]) -> Void
    ) {
        var (answers, completion): ([Answer], (([Answer]) -> Void)?) = ([], completion)
        let expected = workers.count
        let finish = { completion.take()?(answers) }
        let receive = LoopBound(
            { (answer: Answer) in
                answers.append(answer)
                if answers.count == expected { finish() }
            }, on: control)
        post { worker in ask(worker) { answer in receive.handle.post { receive.value(answer) } } }
        if expected == 0 { finish() }
        if let patience { control.schedule(after: patience.nanoseconds) { finish() } }
    }

    // MARK: - Ending

    /// Ends every worker now and waits for its thread.
    func stop() {
        start = nil
        for member in members { member.thread.stop() }
        for member in members { member.thread.join() }
        members.removeAll()
    }
}
