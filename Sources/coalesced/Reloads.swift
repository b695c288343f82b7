import Admin
import Bytes
import Configuration
import Libevent
import Logging
import Proxy
import Routing
import TLS

/// Reads the settings again and puts them to use, one reload after another.
///
/// ```
/// idle ─ask→ reloading ─all workers use the settings, or a mistake→ idle
///              └─ask→ reloading, to be repeated ─the same→ reloading
///                                                └─the same, but the program is in another phase by now→ idle
/// ```
///
/// Who asks during a reload gets the outcome of the next one, since the file may have changed after it was read. Owned by
/// the daemon, confined to its loop.
final class Reloads {
    private let source: ConfigurationSource
    private let server: ProxyServer
    private let serviceManager: ServiceManager
    private var log: Logger
    private var provision: Provision
    private let atStart: Settings
    /// The settings in use.
    private(set) var current: Settings
    /// Called after each reload, with the settings that are in use then.
    private let tellOutcome: (ReloadOutcome.Kind, Settings) -> Void
    /// Why no reload may begin now; `nil` if one may. A caller may wait for the end of another.
    var refusal: () -> ReloadOutcome? = { nil }
    private(set) var isReloading = false
    /// Called once, when no reload is under way or wanted any more.
    var whenIdle: (() -> Void)?
    private var waiting: [(ReloadOutcome) -> Void] = []

    /// - Parameter current: the settings at the start.
    init(
        from source: ConfigurationSource, for server: ProxyServer, startedWith current: Settings,
        _ provision: Provision,
        telling serviceManager: ServiceManager, _ log: Logger,
        tellOutcome: @escaping (ReloadOutcome.Kind, Settings) -> Void
    ) {
        self.source = source
        self.server = server
        self.serviceManager = serviceManager
        self.log = log
        self.provision = provision
        atStart = current
        self.current = current
        self.tellOutcome = tellOutcome
    }

    /// Takes the new settings or, if there is any mistake, keeps all old ones. `completion` gets the outcome. Call this
    /// only in a phase of the program that allows it.
    func ask(_ completion: @escaping (ReloadOutcome) -> Void) {
        waiting.append(completion)
        if !isReloading { begin() }
    }

    private func begin() {
        let askers = waiting
        waiting = []
        isReloading = true
        serviceManager.reloading()
        reload { [self] outcome in
            tellOutcome(outcome.kind, current)
            serviceManager.ready()
            isReloading = false
            for asker in askers { asker(outcome) }
            if !isReloading { beginNext() }
        }
    }

    private func beginNext() {
        if !waiting.isEmpty {
            guard let refusal = refusal() else { return begin() }
            let askers = waiting
            waiting = []
            for asker in askers { asker(refusal) }
        }
        whenIdle.take()?()
    }

    private func reload(_ completion: @escaping (ReloadOutcome) -> Void) {
        func keep(because lines: [String]) {
            for line in lines { log.error("\(line)") }
            log.error("configuration not reloaded; keeping the current settings")
            completion(ReloadOutcome(.mistakes, lines))
        }
        let reading: ConfigurationSource.Reading
        do throws(ConfigurationSource.Failure) {
            reading = try source.read(mayWait: false)
        } catch {
            return keep(because: error.lines)
        }
        let new = reading.settings
        server.reload(provision.bounded(new, telling: log).proxy, upstreams: new.upstreams) { [self] error in
            if let error {
                let place = reading.sources.place(ofKey: new.key(blamedBy: error))
                return keep(because: [(place.map { "\($0): " } ?? "") + "\(error)"])
            }
            current = new
            log.logLevel = Logger.Level(new.logLevel)
            completion(ReloadOutcome(.done, tell(reading)))
        }
    }

    /// - Returns: the lines that the log got.
    private func tell(_ reading: ConfigurationSource.Reading) -> [String] {
        let done =
            reading.file.map { "reloaded \($0.path)" }
            ?? "nothing to reload: --config was not given, and \(source.readPath) does not exist"
        log.info("\(done)")
        Daemon.logWarnings(of: reading.settings, in: log)
        Daemon.logCertificates(of: reading.settings, in: log)
        let warnings = reading.settings.warnings.map(\.warning)
        let waiting = atStart.keysAtStart(changedBy: reading.settings)
        guard !waiting.isEmpty else { return [done] + warnings }
        let notice = "changed, but only takes effect after a restart: \(waiting.joined(separator: ", "))"
        log.notice("\(notice)")
        return [done] + warnings + [notice]
    }
}

extension Settings {
    /// The path of the key whose value cannot be used.
    fileprivate func key(blamedBy error: ProxyServer.StartError) -> String {
        guard case .tls(let error) = error else { return "listen" }
        for (index, identity) in proxy.tls.identities.enumerated() {
            if identity.certificate.path == error.file { return "tls.certificates[\(index)].certificate" }
            if identity.key.path == error.file { return "tls.certificates[\(index)].key" }
        }
        return "tls"
    }
}
