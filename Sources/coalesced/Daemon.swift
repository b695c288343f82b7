internal import Admin
internal import Configuration
internal import Glibc
internal import Libevent
internal import Logging
internal import Proxy

/// The running program: the proxy and its admin listener, signals, and what the service manager is told.
///
/// Lives on the main thread's loop, which does nothing else. The workers have threads of their own.
///
///     serving ─SIGHUP→ serving ─SIGTERM, SIGINT→ draining ─all requests done, or again a signal→ ended
final class Daemon {
    private let loop: EventLoop
    private let server: ProxyServer
    private let admin: AdminServer?
    private let source: ConfigurationSource?
    private let serviceManager: ServiceManager
    private var log: Logger
    private var isDraining = false

    /// What is told once clients can connect.
    struct Addresses {
        let listeners: [SocketAddress]
        let admin: SocketAddress?
    }

    /// Runs until a signal ends it. On the main thread.
    /// - Parameters:
    ///   - source: where `SIGHUP` finds new settings. `nil`: nowhere.
    ///   - isReady: called once all listeners accept.
    /// - Throws: an exit code, after saying why on standard error.
    static func run(
        _ settings: Settings, reloadingFrom source: ConfigurationSource?, isReady: (Addresses) -> Void = { _ in }
    ) throws {
        let log = Logger(label: "coalesced") { _ in DiagnosticsLog(level: Logger.Level(settings.logLevel)) }
        do {
            let daemon = try Daemon(settings, source: source, log: log)
            try daemon.serve(isReady)
        } catch let error as ListenError {
            log.critical("\(error)")
            throw error.exitStatus
        } catch let error as SystemError {
            log.critical("cannot start: \(error)")
            throw ExitStatus.unavailable
        }
    }

    private init(_ settings: Settings, source: ConfigurationSource?, log: Logger) throws {
        self.source = source
        self.log = log
        loop = try EventLoop()
        serviceManager = ServiceManager(log: log)
        let descriptors = try raiseFileDescriptorLimit()
        // A miss takes one for the client and one for the origin.
        if descriptors < 2 * settings.proxy.clients.maxConnections {
            log.notice(
                "the limit of open files is low for so many connections; raise LimitNOFILE or lower clients.max-connections",
                metadata: ["limit": "\(descriptors)", "max-connections": "\(settings.proxy.clients.maxConnections)"])
        }
        server = try ProxyServer(
            settings.proxy, upstreams: settings.upstreams, storage: settings.storage, accessLog: settings.accessLog, log: log)
        if let address = settings.admin.address {
            admin = try AdminServer(at: address, settings.admin, of: server, on: loop)
        } else {
            admin = nil
        }
    }

    private func serve(_ isReady: (Addresses) -> Void) throws {
        for signal in [SIGTERM, SIGINT] { try loop.onSignal(signal) { [unowned self] in end() } }
        try loop.onSignal(SIGHUP) { [unowned self] in reload() }
        for address in server.addresses { DiagnosticsLog.announce("listening on \(address)") }
        if let admin { DiagnosticsLog.announce("listening on \(admin.address) (admin)") }
        serviceManager.ready()
        isReady(Addresses(listeners: server.addresses, admin: admin?.address))
        loop.run()
        server.stop()
        loop.finish()
    }

    /// The first time lets requests finish; the second time ends at once.
    private func end() {
        if isDraining {
            log.notice("told again to end: cutting what is left")
            return loop.stop()
        }
        isDraining = true
        log.info("ending: no new connections, waiting for requests in flight")
        serviceManager.stopping()
        server.drain(reportingTo: loop.handle) { [handle = loop.handle] in handle.stop() }
    }

    /// Takes up new settings, or keeps the old ones whole if there is a mistake anywhere.
    private func reload() {
        guard let source, !isDraining else { return }
        serviceManager.reloading()
        defer { serviceManager.ready() }
        do throws(ConfigurationSource.Failure) {
            let settings = try source.load()
            log.logLevel = Logger.Level(settings.logLevel)
            server.reload(settings.proxy, upstreams: settings.upstreams)
            log.info("reloaded \(source.readPath)")
        } catch {
            for line in error.lines { log.error("\(line)") }
            log.error("not reloaded: the settings in use stay")
        }
    }
}
