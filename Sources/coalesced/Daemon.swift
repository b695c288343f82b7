import Admin
import Configuration
import Glibc
import Libevent
import Logging
import Proxy
import Routing
import Storage
import Upstream

/// The running program: the proxy and its admin listener, signals, and messages to the service manager.
///
/// It lives on the main thread's loop, which does nothing else. The workers have threads of their own.
///
///     opening ─all listeners accept→ serving ─an ending signal→ draining ─all requests done, or another signal→ ended
///        │                           │  │ └─the same, with a delay→ about to drain ─its end, or another signal→ draining
///        │                           │  └─SIGUSR2→ upgrading ─the new program accepts→ draining
///        │                           │                ├─it fails→ serving
///        │                           │                └─an ending signal→ draining
///        └───────────────────────────┴─an ending signal→ draining
///
/// A program that another one has started to take its place is `opening` until the other one accepts no more.
final class Daemon {
    private enum Phase {
        /// `reloadIsWanted`: a reload waits until the listeners accept, since the file may have changed after it was
        /// read.
        case opening(reloadIsWanted: Bool)
        case serving
        /// `later`: the signals that came meanwhile, for the program that serves in the end.
        case upgrading(Upgrade, later: Set<Int32>)
        /// Clients are still accepted until the timer fires.
        case aboutToDrain(Timer)
        case draining(Drain)
    }

    /// handedOver ─an ending signal→ signalled ─another one→ cutShort
    private enum Drain { case handedOver, signalled, cutShort }

    private let loop: EventLoop
    private let server: ProxyServer
    private let admin: AdminServer?
    /// The settings at the start.
    private let settings: Settings
    /// `nil` if a reload only opens the logs again.
    private let reloads: Reloads?
    private let serviceManager: ServiceManager
    private var log: Logger
    /// Of the program's file, by which an upgrade finds its successor.
    private let path = ProgramPath.find()
    /// The sockets that were passed to this program and not taken yet.
    private let inherited: InheritedSockets
    /// The program in whose place this one was started.
    private var predecessor: PredecessorProgram?
    private var phase = Phase.opening(reloadIsWanted: false)
    /// The upgrade that was the last one, because this program hands over or ends: the new program may tell of purges,
    /// or may not have ended yet.
    private var lastUpgrade: Upgrade?
    private var acceptsClients = false
    /// From then on when clients are accepted, until another program takes the place of this one.
    private var heartbeat: Heartbeat?

    /// The bound addresses, reported once clients can connect.
    struct Addresses {
        let listeners: [SocketAddress]
        let admin: SocketAddress?
    }

    /// `SIGQUIT` is nginx's signal for a graceful end, and the `STOPSIGNAL` of container images based on nginx's.
    static let endingSignals = [SIGTERM, SIGINT, SIGQUIT]

    /// Call this at the very beginning, so that no signal is lost or ends the program with another exit code.
    static func holdSignalsBack() {
        for signal in endingSignals + [SIGHUP] { System.holdBack(signal) }
        for signal in [SIGUSR1, SIGUSR2] { System.ignore(signal) }
    }

    /// Runs until a signal ends the program. On the main thread.
    /// - Parameters:
    ///   - file: the path of the settings' file, for the log.
    ///   - source: the source of new settings on `SIGHUP`; `nil` if a reload only opens the logs again.
    ///   - isReady: called once all listeners accept.
    /// - Throws: an exit code, after a message on standard error.
    static func run(
        _ settings: Settings, from file: String? = nil, reloadingFrom source: ConfigurationSource?,
        isReady: @escaping (Addresses) -> Void = { _ in }
    ) throws {
        // Before any other descriptor is opened: otherwise a new descriptor could have the number of an announced one
        // that is missing, and would be taken for it.
        let inherited = Result { () throws(ProxyServer.StartError) in try takeInherited(for: settings) }
        let log = Logger(label: "coalesced") { _ in DiagnosticsLog(level: Logger.Level(settings.logLevel)) }
        let libeventLog = LibeventLog(log)
        LibeventMessages.send(to: libeventLog.write)
        log.info("\(StartText.introduction(settings, file))")
        logWarnings(of: settings, in: log)
        logCertificates(of: settings, in: log)
        // Held back until the loop watches for them. A signal must not end the program directly, since Unix sockets'
        // paths are removed at the end.
        holdSignalsBack()
        do throws(ProxyServer.StartError) {
            let daemon = try Daemon(settings, source: source, inherited: try inherited.get(), log: log)
            libeventLog.reportSuppressed(on: daemon.loop)
            try daemon.serve(isReady)
        } catch {
            log.critical("\(error)\(StartText.advice(for: error, settings))")
            throw error.exitStatus
        }
    }

    private init(
        _ settings: Settings, source: ConfigurationSource?, inherited: InheritedSockets, log: Logger
    ) throws(ProxyServer.StartError) {
        System.ignore(SIGPIPE)
        self.settings = settings
        self.inherited = inherited
        self.log = log
        serviceManager = ServiceManager(log: log)
        var provision: Provision
        do throws(SystemError) {
            provision = Provision(descriptors: try raiseFileDescriptorLimit(), startedWith: settings)
            loop = try EventLoop()
            Allocator.keepFreedMemory()
        } catch {
            throw .system(error)
        }
        Provision.checkMemory(for: settings, telling: log)
        server = ProxyServer(
            provision.bounded(settings, telling: log).proxy, upstreams: settings.upstreams, storage: settings.storage,
            accessLog: settings.accessLog,
            inherited: inherited, on: loop, log: log)
        do throws(ListenError) {
            if let address = settings.admin.address {
                admin = try AdminServer(
                    at: address, settings.admin, settings.proxy.tls, from: inherited, of: server,
                    version: Version.current, on: loop
                ) { reason in
                    log.warning(
                        "the admin listener refused a request; further refusals are not logged",
                        metadata: ["reason": "\(reason.dropLast())"])
                } onConnectionLimit: {
                    log.warning(
                        "limit of \(AdminServer.maxConnections) connections to the admin listener reached; the oldest without a whole request gives way to each new one"
                    )
                }
            } else {
                admin = nil
            }
        } catch {
            throw .listen(error)
        }
        reloads = source.map { [server, serviceManager, admin] source in
            Reloads(from: source, for: server, startedWith: settings, provision, telling: serviceManager, log) {
                admin?.reloaded(succeeded: $0 == .done)
                admin?.apply($1.admin, $1.proxy.tls)
            }
        }
        if let reloads {
            admin?.onReload { [unowned self] in reload($0) }
            reloads.refusal = { [unowned self] in refusal() }
        }
        // A predecessor still answers, so that no probe finds this program before it accepts clients.
        guard let connection = inherited.takePredecessor() else {
            do throws(ListenError) { try admin?.listen() } catch { throw .listen(error) }
            admin?.resume()
            return
        }
        predecessor = PredecessorProgram(connection, on: loop) { [unowned self] in
            startServing()
        }
        server.purgeDesk.onPurged = { [unowned self] in purgePredecessor($0) }
    }

    /// The sockets that were passed to this program.
    private static func takeInherited(for settings: Settings) throws(ProxyServer.StartError) -> InheritedSockets {
        do throws(InheritedSockets.Failure) {
            return try InheritedSockets.takeAll(
                for: settings.proxy.listeners + [settings.admin.address].compactMap(\.self))
        } catch {
            throw .inherited(error)
        }
    }

    private func serve(_ isReady: @escaping (Addresses) -> Void) throws(ProxyServer.StartError) {
        do throws(SystemError) {
            for signal in Self.endingSignals { try loop.onSignal(signal) { [unowned self] in end(on: signal) } }
            let burst = ReloadSignals(on: loop) { [unowned self] in reload() }
            try loop.onSignal(SIGHUP) { burst.arrived() }
            // For nginx `SIGUSR1` means 'open the logs again', and logrotate's rules are often copied from nginx's.
            try loop.onSignal(SIGUSR1) { [unowned self] in reopenLogs() }
            // nginx's signal for the change to a new program.
            try loop.onSignal(SIGUSR2) { [unowned self] in upgrade() }
        } catch {
            throw .system(error)
        }
        var failure: ProxyServer.StartError?
        func accept(_ proceed: @escaping () -> Void) {
            guard let predecessor else { return proceed() }
            predecessor.tellReady { [unowned self] in
                do throws(ListenError) {
                    try admin?.listen()
                    proceed()
                } catch {
                    failure = .listen(error)
                    server.stop()
                    loop.stop()
                }
            }
        }
        server.start(listeningAfter: accept) { [unowned self] result in
            switch result {
            case .success(let addresses): opened(addresses, isReady)
            case .failure(let error):
                failure = error
                loop.stop()
            }
        }
        loop.run()
        lastUpgrade?.kill()
        admin?.close()
        if failure == nil {
            server.stop()
            logDraining()
        }
        // The loop no longer watches for them.
        Self.holdSignalsBack()
        loop.finish()
        if let failure { throw failure }
    }

    private func opened(_ addresses: [SocketAddress], _ isReady: (Addresses) -> Void) {
        let secure = settings.proxy.secureListeners.isEmpty ? [] : server.snapshot.tls?.addresses ?? []
        for address in addresses {
            DiagnosticsLog.announce("listening on \(address)\(secure.contains(address) ? " (TLS)" : "")")
        }
        if let admin {
            DiagnosticsLog.announce("listening on \(admin.address) (admin\(admin.isSecure ? ", TLS" : ""))")
        }
        for upstream in settings.upstreams {
            log.info(
                "forwarding to \(upstream.servers.map(\.description).joined(separator: ", ")) (upstream \(upstream.name))"
            )
        }
        isReady(Addresses(listeners: addresses, admin: admin?.address))
        acceptsClients = true
        admin?.resume()
        inherited.dropPorts()
        predecessor?.tellAccepting()
        startServing()
    }

    /// Clients are accepted, and no other program accepts on the same sockets any more.
    private func startServing() {
        guard acceptsClients, predecessor?.isReleased ?? true, case .opening(let reloadIsWanted) = phase else { return }
        if inherited.isHandedOn {
            for socket in sockets { socket.socket.takePath() }
            admin?.acceptRest(of: inherited.takeRest())
            inherited.dropRest()
            log.info("the former program accepts no more")
            serviceManager.tookOver()
        } else {
            serviceManager.ready()
        }
        heartbeat = Heartbeat(of: server, to: serviceManager, on: loop)
        phase = .serving
        if reloadIsWanted { reload() }
    }

    /// The listening sockets, with their use.
    private var sockets: [(socket: ListeningSocket, use: InheritedSockets.Use)] {
        server.sockets.map { ($0, .clients) } + (admin?.sockets ?? []).map { ($0, .admin) }
    }

    /// The first signal stops accepting, after `drain-delay` if there is one, and lets requests finish. During the
    /// delay, the next signal ends the delay. A further one ends the program at once.
    private func end(on signal: Int32) {
        let name = [SIGINT: "SIGINT", SIGQUIT: "SIGQUIT"][signal] ?? "SIGTERM"
        switch phase {
        case .serving where server.drainDelay > .zero:
            let delay = server.drainDelay
            log.info("\(name): not ready any more, new connections for another \(delay)")
            serviceManager.stopping()
            server.prepareToDrain()
            phase = .aboutToDrain(
                loop.schedule(after: delay.nanoseconds) { [unowned self] in drain(because: "drain-delay is over") })
        case .upgrading(let upgrade, _):
            upgrade.cancel()
            lastUpgrade = upgrade
            phase = .serving
            resumeAdmin()
            end(on: signal)
        case .opening, .serving:
            serviceManager.stopping()
            drain(because: name)
        case .aboutToDrain(let end):
            end.cancel()
            drain(because: "\(name), the second signal")
        // Service managers send the signal to all processes of a service, also to one that drains already.
        case .draining(.handedOver): drain(because: name)
        case .draining(.signalled), .draining(.cutShort):
            phase = .draining(.cutShort)
            log.notice("\(name), again: closing remaining connections")
            loop.stop()
        }
    }

    private func drain(because reason: String) {
        phase = .draining(.signalled)
        log.info("\(reason): no new connections, waiting for requests in flight")
        server.drain { [unowned self] in loop.stop() }
    }

    private func logDraining() {
        guard case .draining(let drain) = phase else { return }
        let report = server.drainReport
        let finished =
            "drained: \(report.ended) \(report.ended == 1 ? "request or tunnel" : "requests and tunnels") finished"
        guard report.cutRequests + report.cutTunnels > 0 else { return log.info("\(finished), none cut off") }
        let cut =
            "\(StartText.counted(report.cutRequests, "request")) and \(StartText.counted(report.cutTunnels, "tunnel")) cut off"
        log.notice("\(finished), \(cut) \(drain == .cutShort ? "by another signal" : "after drain-timeout")")
    }

    /// Thousands of routes may each give a warning; `check` shows all of them.
    private static let mostWarnings = 20

    static func logWarnings(of settings: Settings, in log: Logger) {
        for warning in settings.warnings.prefix(mostWarnings) { log.warning("\(warning)") }
        let left = settings.warnings.count - mostWarnings
        if left > 0 {
            log.warning("\(StartText.counted(left, "more warning")) about the configuration: see `coalesced check`")
        }
    }

    /// Logs the certificates that clients are shown: so the log tells when a renewed one came into use.
    static func logCertificates(of settings: Settings, in log: Logger) {
        for line in CertificateReview(of: settings, at: System.wallClockSeconds).lines.prefix(mostWarnings) {
            log.notice("\(line)")
        }
    }

    // MARK: - Upgrading

    /// Starts the program that is by now at this one's path, on the same sockets. Once it accepts, this one drains; if
    /// it fails, this one goes on.
    private func upgrade() {
        switch phase {
        case .serving: break
        case .opening: return tellNotUpgraded("this program does not accept clients yet")
        case .upgrading: return tellNotUpgraded("another upgrade is under way")
        case .aboutToDrain, .draining: return tellNotUpgraded("this program is ending")
        }
        guard let reloads, let path else {
            return tellNotUpgraded(reloads == nil ? "this is a demonstration" : "the path of this program is not known")
        }
        // The kernel ends all processes of a container with its first one.
        guard System.processNumber != 1 else {
            return tellNotUpgraded("this is process 1 of its container, which ends with it; start another container")
        }
        // The new program gets the listeners of the settings that it reads.
        guard !reloads.isReloading else {
            reloads.whenIdle = { [unowned self] in upgrade() }
            return
        }
        log.info("SIGUSR2: starting \(path)")
        do throws(SystemError) {
            let upgrade = try Upgrade(to: path, handing: sockets, within: reloads.current.upgradeTimeout, on: loop) {
                [unowned self] in heard($0)
            }
            phase = .upgrading(upgrade, later: [])
        } catch {
            tellNotUpgraded("\(path) cannot be started: \(error.message); this program serves on")
        }
    }

    /// No other program takes the place of this one after all.
    private func resumeAdmin() {
        admin?.resume()
        server.purgeDesk.isClosed = false
    }

    private func tellNotUpgraded(_ reason: String) { log.error("not upgraded: \(reason)") }

    private func heard(_ event: Upgrade.Event) {
        if case .purges(let done) = event { return purge(done) }
        // An ending signal may have come meanwhile.
        guard case .upgrading(let upgrade, let later) = phase else { return }
        switch event {
        case .purges: break
        case .isReady:
            // The responses that the new program will have stored were fetched after the purges that are under way here. Later
            // purges wait in the queue for the program that accepts next; one here would not reach the cache of that one.
            admin?.pause()
            server.purgeDesk.isClosed = true
            upgrade.permit()
        case .failed(let reason):
            tellNotUpgraded("\(path ?? ""): \(reason); this program serves on")
            phase = .serving
            resumeAdmin()
            if later.contains(SIGHUP) { reload() }
        case .accepts(let process):
            log.info("upgraded: process \(process) accepts clients; waiting for requests in flight here")
            for socket in sockets { socket.socket.leavePath() }
            // Before this process may end, and before the new one says that it is ready.
            heartbeat = nil
            serviceManager.handedOver(to: process)
            for signal in later { System.send(signal, to: process) }
            phase = .draining(.handedOver)
            lastUpgrade = upgrade
            admin?.stopAccepting()
            server.handOver { [unowned self] in
                // Purges reach that one through this one.
                guard let predecessor, !predecessor.isClosed else { return leave() }
                predecessor.whenEnded = { [unowned self] in leave() }
            }
            upgrade.letGo()
        }
    }

    /// Another program accepts, and this one has served its clients.
    private func leave() {
        guard let admin else { return loop.stop() }
        admin.finish { [unowned self] in loop.stop() }
    }

    /// Empties the cache, since something was purged in the program that takes the place of this one: clients that are
    /// connected here may still send a request.
    private func purge(_ done: @escaping () -> Void) {
        var everything = PurgeRequest()
        everything.isOfEverything = true
        server.purge(everything) { [unowned self] outcome in
            // Otherwise this program ends, and the connection to the new one with it.
            guard let outcome else { return }
            log.info("purged for the new program: \(StartText.counted(outcome.count, "response")) removed")
            purgePredecessor(done)
        }
    }

    /// The same there.
    private func purgePredecessor(_ done: @escaping () -> Void) {
        if let predecessor { predecessor.purge(done) } else { done() }
    }

    private func reopenLogs() {
        server.reopenLogs()
        noteForLater(SIGUSR1)
    }

    /// - Returns: whether an upgrade is under way, so that the program that serves after it is to hear of the signal.
    @discardableResult
    private func noteForLater(_ signal: Int32) -> Bool {
        guard case .upgrading(let upgrade, let later) = phase else { return false }
        phase = .upgrading(upgrade, later: later.union([signal]))
        return true
    }

    // MARK: - Reloading

    /// Opens the logs again. Then takes the new settings, in the program that serves in the end.
    private func reload(_ completion: @escaping (ReloadOutcome) -> Void = { _ in }) {
        // Even if the file has mistakes: the program that rotated the log waits for this.
        server.reopenLogs()
        guard let reloads else {
            return completion(ReloadOutcome(.notNow, ["this program has no configuration"]))
        }
        if let refusal = refusal() { completion(refusal) } else { reloads.ask(completion) }
    }

    /// Why no reload may begin in this phase; `nil` if one may. Where there will be one later, this notes it.
    private func refusal() -> ReloadOutcome? {
        func refuse(_ reason: String) -> ReloadOutcome { ReloadOutcome(.notNow, [reason]) }
        switch phase {
        case .opening:
            phase = .opening(reloadIsWanted: true)
            return refuse("the program is starting, and reloads then")
        case .upgrading:
            noteForLater(SIGHUP)
            return refuse("an upgrade is under way; the program that serves after it reloads")
        case .serving: return nil
        case .aboutToDrain, .draining:
            log.notice("configuration not reloaded: the program is ending")
            return refuse("the program is ending")
        }
    }
}
