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
/// new ─start→ starting ─the workers run→ opening ─all accept→ running ─prepareToDrain→ aboutToDrain ─drain→ draining
///                 │                         │                    ├─drain→ draining
///                 │                         │                    └─handOver→ handedOver ─drain→ draining
///                 │                         └─a socket or a worker fails, or drain→ draining
///                 └─an address cannot be bound→ stopped
/// any ─stop→ stopped
/// ```
package final class ProxyServer {
    private enum State { case new, starting, opening, running, aboutToDrain, handedOver, draining, stopped }

    let shared: SharedState
    let workers: WorkerGroup
    /// The control loop.
    let control: EventLoop
    /// What `reload` replaces.
    private(set) var loopSettings: LoopSettings
    private(set) var certificates = Certificates()
    private(set) var formerOrigins = FormerOrigins()
    private let checks: OriginChecks
    let purges: Purges
    /// Serves the purges of operators.
    package let purgeDesk: PurgeDesk
    private let accessLogSettings: AccessLogSettings
    /// As they were at the start.
    private let listening: Listener.Settings
    /// Listening sockets that were passed to this program. `start` takes those that it has a place for.
    private let inherited: InheritedSockets
    /// The addresses at which clients connect, with their sockets. Empty once the workers accept no more: sockets that
    /// are held here would stay open, and clients would wait for an accept that never comes.
    private(set) var targets: [ListenTarget] = []
    /// The addresses of `targets`, also after the workers have stopped accepting.
    private(set) var addresses: [SocketAddress] = []
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
        inherited: InheritedSockets = InheritedSockets(), on control: EventLoop, log: Logger
    ) {
        self.inherited = inherited
        accessLogSettings = accessLog
        var listening = Listener.Settings()
        listening.backlog = Int32(clamping: settings.backlog)
        listening.pathMode = settings.socketMode
        self.listening = listening
        shared = SharedState(storage, log: log, control: control.handle)
        loopSettings = LoopSettings(settings, upstreams: upstreams)
        let origins = loopSettings.origins
        shared.changeOrigins { origins }
        self.control = control
        workers = WorkerGroup(control: control)
        checks = OriginChecks(shared, on: control)
        purges = Purges(shared, on: control)
        purgeDesk = PurgeDesk(log: log)
        openPurgeDesk()
    }

    /// Whether all listeners accept.
    package var isReady: Bool { state == .running }
    /// Whether the proxy drains: it accepts no more connections, or soon will not, and waits for the current requests.
    package var isDraining: Bool { [.aboutToDrain, .handedOver, .draining].contains(state) }
    /// How long to wait between `prepareToDrain` and `drain`.
    package var drainDelay: Duration { settings.drainDelay }
    /// `nil` without a shared tier.
    private(set) var tier: TierControl?
    private var settings: ProxySettings { loopSettings.settings }

    /// Binds the addresses, starts the workers, and then listens. `ready` is called on the control loop with the
    /// addresses that accept connections, or with the error after which the proxy is stopped.
    /// - Parameter wait: called when nothing is left to do but to listen, with what goes on.
    package func start(
        listeningAfter wait: @escaping (_ goOn: @escaping () -> Void) -> Void = { $0() },
        ready: @escaping (Result<[SocketAddress], StartError>) -> Void
    ) {
        precondition(state == .new, "a server starts once")
        state = .starting
        let count = settings.workers > 0 ? settings.workers : processorCount()
        do throws(StartError) {
            targets = try open(settings.listeners, forLoops: count, from: inherited)
            addresses = targets.map(\.address)
            certificates = try certificates.changed(to: settings, workers: count)
            accessLog = try .open(accessLogSettings, workers: count, log: shared.log)
        } catch {
            stop()
            return ready(.failure(error))
        }
        workers.start(
            count,
            make: { [shared, loopSettings, accessLog, servers = certificates.servers] index, loop, metrics in
                Worker(
                    index: index,
                    LoopContext(
                        ofWorker: index, on: loop, shared: shared, settings: loopSettings, metrics: metrics,
                        feed: accessLog?.feed(ofWorker: index, on: loop)),
                    servers.isEmpty ? nil : servers[index])
            }
        ) { [unowned self] error in
            guard state == .starting else { return }
            guard let error else { return wait { [unowned self] in listen(ready) } }
            stop()
            ready(.failure(.system(error)))
        }
    }

    /// The last step of the start: everything else that can fail has been done.
    private func listen(_ ready: @escaping (Result<[SocketAddress], StartError>) -> Void) {
        guard state == .starting else { return }
        state = .opening
        workers.listen(at: targets) { [unowned self] error in
            guard state == .opening else { return }
            guard let error else {
                state = .running
                checks.change(to: loopSettings.origins)
                tier = TierControl(settings, shared, on: control) { [unowned self] in purge($0) { _ in } }
                return ready(.success(addresses))
            }
            // Clients may have come by now.
            drain { [unowned self] in
                stop()
                ready(.failure(.listen(error)))
            }
        }
    }

    /// The sockets at which clients connect, for the program that takes the place of this one.
    package var sockets: [ListeningSocket] { targets.flatMap(\.sockets) }

    /// Every loop uses the new settings for its next requests; connections stay open. First all loops accept at the
    /// addresses that the new settings add; then none accepts at those that they no longer have. Workers, storage and
    /// the access log keep the settings with which they were started.
    /// - Parameter completion: called on the control loop when all loops use the settings, or with an error, after which
    ///   the former settings stay.
    package func reload(
        _ new: ProxySettings, upstreams: [UpstreamSettings], completion: @escaping (StartError?) -> Void
    ) {
        guard state == .running else { return completion(nil) }
        let (certificates, opened): (Certificates, [ListenTarget])
        do throws(StartError) {
            certificates = try self.certificates.changed(to: new, workers: workers.count)
            opened = try openTargets(of: new)
        } catch {
            return completion(error)
        }
        let added = opened.filter { target in !targets.contains { $0.isSame(as: target) } }
        let special = new.specialListeners.filter { address, _ in added.contains { $0.configured == address } }
        workers.post { [servers = certificates.servers] worker in
            worker.clients.expect(at: special, servers.isEmpty ? nil : servers[worker.index])
        }
        workers.listen(at: added) { [unowned self] error in
            if let error { return completion(.listen(error)) }
            guard state == .running else { return completion(nil) }
            // Not the sockets themselves: the last owner of a socket must be the worker that accepts what waits there.
            let removed = targets.filter { target in !opened.contains { $0.isSame(as: target) } }.map(\.address)
            targets = opened
            addresses = opened.map(\.address)
            use(new, upstreams)
            self.certificates = certificates
            workers.gather({ [loopSettings, servers = certificates.servers] worker, answer in
                // What waits there was sent to listeners of the former settings.
                worker.clients.stopListening(at: removed)
                worker.apply(loopSettings, servers.isEmpty ? nil : servers[worker.index])
                answer(())
            }) { (_: [Void]) in completion(nil) }
        }
    }

    private func use(_ new: ProxySettings, _ upstreams: [UpstreamSettings]) {
        let loopSettings = LoopSettings(
            new, upstreams: upstreams, number: loopSettings.number + 1, previous: loopSettings)
        shared.changeOrigins {
            formerOrigins.replaced(self.loopSettings.origins, by: loopSettings.origins)
            return loopSettings.origins + formerOrigins.origins
        }
        self.loopSettings = loopSettings
        checks.change(to: loopSettings.origins)
    }

    private func openTargets(of new: ProxySettings) throws(StartError) -> [ListenTarget] {
        for target in targets where target.sockets.contains(where: \.isKept) {
            // Clients would wait in its queue forever.
            guard new.listeners.contains(target.configured) else { throw .inherited(.notConfigured(target.address)) }
        }
        return try open(new.listeners, forLoops: workers.count)
    }

    private func open(
        _ addresses: [SocketAddress], forLoops count: Int, from inherited: InheritedSockets = InheritedSockets()
    ) throws(StartError) -> [ListenTarget] {
        do throws(ListenError) {
            return try ListenTarget.open(
                addresses, listening, forLoops: count, from: inherited, keeping: targets)
        } catch {
            throw .listen(error)
        }
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
        switch state {
        case .opening, .running, .aboutToDrain, .handedOver: break
        case .new, .starting, .draining, .stopped: return completion()
        }
        state = .draining
        leave(closingIdle: true, completion)
    }

    /// As `drain`, but another program accepts on the sockets from now on, so there is no hurry: an idle connection gets
    /// a response to its next request, and closes with it.
    package func handOver(_ completion: @escaping () -> Void) {
        guard state == .running else { return completion() }
        state = .handedOver
        leave(closingIdle: false, completion)
    }

    private func leave(closingIdle: Bool, _ completion: @escaping () -> Void) {
        targets = []
        checks.stop()
        workers.gather(
            within: settings.drainTimeout,
            { worker, idle in worker.drain(closingIdle: closingIdle) { idle(()) } }
        ) { (_: [Void]) in completion() }
    }

    /// How the requests and tunnels ended that were in progress when the drain began; complete after `stop`.
    package var drainReport: DrainReport { shared.drained.withLock { $0 } }

    /// Ends everything now and waits for the threads.
    package func stop() {
        state = .stopped
        targets = []
        checks.stop()
        purges.cancelAll()
        tier.take()?.stop()
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
