import Bytes
import Libevent
import Telemetry

/// The workers, as the control loop handles them: it starts them one after another, runs jobs on all of them, gathers
/// their answers, and ends them.
///
/// Owned by the server, confined to the control loop.
final class WorkerGroup {
    typealias Make = @Sendable (_ index: Int, _ loop: EventLoop, _ metrics: LoopMetrics) -> Worker

    private struct Member {
        let thread: LoopThread
        let metrics: LoopMetrics
        /// `nil` until the worker runs.
        var worker: LoopBound<Worker>?
    }

    private struct Start {
        let count: Int
        let make: Make
        let completion: (SystemError?) -> Void
    }

    private let control: EventLoop
    private var members: [Member] = []
    /// Only while starting.
    private var start: Start?

    init(control: EventLoop) { self.control = control }

    var count: Int { workers.count }
    /// The counters of all loops together.
    var counters: CounterValues { CounterValues(sumOf: members.map(\.metrics)) }

    private var workers: [LoopBound<Worker>] { members.compactMap(\.worker) }

    // MARK: - Starting

    /// Starts `count` workers, which accept no connections yet.
    /// - Parameters:
    ///   - make: makes one worker; called on that worker's loop.
    ///   - completion: called on the control loop; after an error, `stop` ends the workers that were started.
    func start(_ count: Int, make: @escaping Make, completion: @escaping (SystemError?) -> Void) {
        start = Start(count: count, make: make, completion: completion)
        startNext()
    }

    /// Starts the next worker.
    private func startNext() {
        guard let start else { return }
        guard members.count < start.count else { return end(nil) }
        let (index, make) = (members.count, start.make)
        let metrics = LoopMetrics()
        let report = LoopBound({ [weak self] (worker: LoopBound<Worker>) in _ = self?.started(worker) }, on: control)
        do throws(SystemError) {
            let thread = try LoopThread(name: "worker-\(index)") { loop in
                let worker = make(index, loop, metrics)
                let bound = LoopBound(worker, on: loop)
                report.handle.post { report.value(bound) }
                loop.run()
                worker.cut()
            }
            members.append(Member(thread: thread, metrics: metrics))
        } catch {
            end(error)
        }
    }

    private func started(_ worker: LoopBound<Worker>) {
        // `stop` may have been called meanwhile.
        guard start != nil, !members.isEmpty else { return }
        members[members.count - 1].worker = worker
        startNext()
    }

    private func end(_ error: SystemError?) { start.take()?.completion(error) }

    // MARK: - Listening

    /// All workers accept connections at `targets`, or none: after an error, they serve only those that came meanwhile.
    /// Sockets that do not listen yet begin that last: before, the kernel gives them no connections that a failure could
    /// cost.
    /// - Parameter completion: called on the control loop when all workers accept.
    func listen(at targets: [ListenTarget], completion: @escaping (ListenError?) -> Void) {
        let count = count
        gather({ worker, answer in
            do throws(ListenError) {
                try worker.clients.listen(at: targets, asLoop: worker.index, among: count)
                answer(nil)
            } catch {
                answer(error)
            }
        }) { [self] (answers: [ListenError?]) in
            do throws(ListenError) {
                if let error = answers.compactMap(\.self).first { throw error }
                try ListenTarget.listen(targets)
                completion(nil)
            } catch {
                let addresses = targets.map(\.address)
                post { worker in worker.clients.stopListening(at: addresses) }
                completion(error)
            }
        }
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
