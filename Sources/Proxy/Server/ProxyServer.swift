import Bytes
import Coalescing
package import Libevent
package import Logging
package import Routing
package import Storage
package import Telemetry
package import Upstream

/// The whole proxy: starts the workers, passes new settings to them, and ends them.
///
/// Confined to the loop on which it is made, the *control loop* of the main thread, which also handles the signals and
/// the admin listener. Every method is called on that loop.
///
/// ```
/// new ─start→ starting ─all accept→ running ─prepareToDrain→ aboutToDrain ─drain→ draining ─stop→ stopped
///                 │                    └─drain→ draining
///                 └─an address cannot be bound→ stopped
/// any ─stop→ stopped
/// ```
package final class ProxyServer {
    /// The reason why the proxy does not start.
    package enum StartError: Error, CustomStringConvertible {
        case listen(ListenError)
        case system(SystemError)
        case accessLog(SystemError, path: String)
        case inherited(InheritedListener.Failure)

        package var description: String {
            switch self {
            case .listen(let error): "\(error)"
            case .system(let error):
                error.call == .pthreadCreate
                    ? "a thread cannot be started: \(error.message); lower workers, or raise the limit of threads or of memory (ulimit -u and -v, or TasksMax under systemd)"
                    : "\(error)"
            case .inherited(let failure): "\(failure)"
            case .accessLog(let error, let path):
                "the access log \(path) cannot be opened: \(error.message)\(Self.advice(for: error))"
            }
        }

        /// The file itself need not exist, only its folder.
        private static func advice(for error: SystemError) -> String {
            if error.isMissing { return "; make the folder it is to stand in" }
            return error.isForbidden ? "; this program runs as \(ownUser())" : ""
        }
    }

    private enum State { case new, starting, running, aboutToDrain, draining, stopped }

    let shared: SharedState
    let workers: WorkerGroup
    /// The control loop.
    let control: EventLoop
    /// What `reload` replaces.
    private(set) var loopSettings: LoopSettings
    private(set) var formerOrigins = FormerOrigins()
    let purges: Purges
    private let accessLogSettings: AccessLogSettings
    /// Listening sockets inherited from the process that started this one; empty once `start` has used them.
    private var inherited: [InheritedListener]
    private(set) var accessLog: AccessLog?
    private var state = State.new

    /// Allocates only; no socket listens before `start`.
    /// - Parameters:
    ///   - upstreams: at least one; the first gets the requests that match no route.
    ///   - inherited: sockets that listen already; sockets at the addresses of `settings.listeners` are used.
    ///   - control: the loop on which this is called.
    ///   - log: the diagnostics log. Written to from any thread.
    package init(
        _ settings: ProxySettings, upstreams: [UpstreamSettings], storage: StorageSettings,
        accessLog: AccessLogSettings,
        inherited: [InheritedListener] = [], on control: EventLoop, log: Logger
    ) {
        self.inherited = inherited
        accessLogSettings = accessLog
        shared = SharedState(storage, log: log)
        loopSettings = LoopSettings(settings, upstreams: upstreams)
        let origins = loopSettings.origins
        shared.changeOrigins { origins }
        self.control = control
        workers = WorkerGroup(control: control)
        purges = Purges(shared, on: control)
    }

    /// Whether all listeners accept.
    package var isReady: Bool { state == .running }
    /// Whether the proxy drains: it accepts no more connections, or soon will not, and waits for the current requests.
    package var isDraining: Bool { state == .aboutToDrain || state == .draining }
    /// How long to wait between `prepareToDrain` and `drain`.
    package var drainDelay: Duration { settings.drainDelay }
    private var settings: ProxySettings { loopSettings.settings }

    /// Starts the workers. `ready` is called on the control loop with the addresses that accept connections, or with
    /// the error after which the proxy is stopped.
    package func start(ready: @escaping (Result<[SocketAddress], StartError>) -> Void) {
        precondition(state == .new, "a server starts once")
        state = .starting
        let count = settings.workers > 0 ? settings.workers : processorCount()
        let targets: [ListenTarget]
        do throws(StartError) {
            targets = try openTargets()
            try openAccessLog(workers: count)
        } catch {
            stop()
            return ready(.failure(error))
        }
        workers.start(
            count, at: targets,
            make: { [shared, loopSettings, accessLog] index, loop, metrics in
                Worker(
                    index: index,
                    LoopContext(
                        ofWorker: index, on: loop, shared: shared, settings: loopSettings, metrics: metrics,
                        feed: accessLog?.feed(ofWorker: index, on: loop)))
            }
        ) { [unowned self] result in
            switch result {
            case .success: state = .running
            case .failure: stop()
            }
            ready(result)
        }
    }

    /// Opens the listen targets before any worker starts: the workers share ports, with which the kernel would let a
    /// second program bind the same address, and a Unix socket can be bound only once.
    private func openTargets() throws(StartError) -> [ListenTarget] {
        var listening = Listener.Settings()
        listening.backlog = Int32(clamping: settings.backlog)
        listening.pathMode = settings.socketMode
        defer { inherited = [] }
        return try Result { () throws(ListenError) in
            try settings.listeners.map { address throws(ListenError) in
                try ListenTarget(address, listening, from: inherited)
            }
        }.mapError(StartError.listen).get()
    }

    private func openAccessLog(workers count: Int) throws(StartError) {
        guard accessLogSettings.target != .off else { return }
        accessLog = try Result { () throws(SystemError) in
            try AccessLog(accessLogSettings, workers: count, log: shared.log)
        }.mapError { StartError.accessLog($0, path: accessLogSettings.path) }.get()
    }

    /// Every loop uses the new settings for its next requests; connections stay open. Listeners, workers, storage and
    /// the access log keep the settings with which they were started.
    package func reload(_ new: ProxySettings, upstreams: [UpstreamSettings]) {
        guard state == .running else { return }
        let loopSettings = LoopSettings(
            new, upstreams: upstreams, number: loopSettings.number + 1, previous: loopSettings)
        shared.changeOrigins {
            formerOrigins.replaced(self.loopSettings.origins, by: loopSettings.origins)
            return loopSettings.origins + formerOrigins.origins
        }
        self.loopSettings = loopSettings
        workers.post { $0.apply(loopSettings) }
    }

    /// Opens the access log again, after it was rotated away.
    package func reopenLogs() { accessLog?.reopen() }

    /// Prepares to drain: from now on `isReady` is false, and each response closes its connection. New connections are
    /// still accepted.
    package func prepareToDrain() {
        guard state == .running else { return }
        state = .aboutToDrain
        workers.post { $0.clients.stopPersisting() }
    }

    /// Accepts no more connections, lets the current requests finish, and calls `completion` on the control loop when
    /// they have, or after the drain timeout.
    package func drain(_ completion: @escaping () -> Void) {
        guard state == .running || state == .aboutToDrain else { return completion() }
        state = .draining
        workers.gather(within: settings.drainTimeout, { worker, idle in worker.drain { idle(()) } }) { (_: [Void]) in
            completion()
        }
    }

    /// How the requests and tunnels ended that were in progress when the drain began; complete after `stop`.
    package var drainReport: DrainReport { shared.drained.withLock { $0 } }

    /// Ends everything now and waits for the threads.
    package func stop() {
        state = .stopped
        purges.cancelAll()
        // Before the fetches end: a request may end because its fetch does.
        workers.post { $0.reportCutOff() }
        // Otherwise each cancelled fetch would free a slot for a waiting one, which would send its request before it is
        // cancelled too.
        let origins = shared.origins
        for origin in origins { origin.fetches.pause() }
        for origin in origins { origin.fetches.cancelAll() }
        workers.stop()
        accessLog?.finish()
    }
}
