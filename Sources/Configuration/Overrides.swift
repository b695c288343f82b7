import Admin
import Bytes
package import Libevent
package import Routing
import Storage
package import TLS
package import Telemetry
package import Upstream

/// The flags of the command line. Each given flag overrides the file.
package struct Overrides: Sendable, Equatable {
    /// The listeners that replace all listeners of the file.
    package var listeners: [ListenerSettings] = []
    /// The certificate and its key in place of all certificates of the file; not read yet.
    package var identity: TLSIdentity?
    /// The servers that replace the servers of the first upstream, which keeps its name and limits.
    package var servers: [UpstreamServer] = []
    /// The engine of the shared tier, or nodes of it, in place of the engines of the file.
    package var engines: [RedisLocation] = []
    package var admin: AdminTarget?
    package var workers: Int?
    /// Bytes.
    package var memory: Int?
    package var logLevel: LogLevel?
    package var accessLog: AccessLogTarget?

    package init() {}
}

/// The value of the `--admin` flag.
package enum AdminTarget: Sendable, Equatable {
    case off
    case address(SocketAddress, isSecure: Bool = false)

    init(_ listener: ListenerSettings?) {
        self = listener.map { .address($0.address, isSecure: $0.isSecure) } ?? .off
    }

    var listener: ListenerSettings? {
        switch self {
        case .off: nil
        case .address(let address, let isSecure):
            ListenerSettings(address, isSecure: isSecure)
        }
    }
}

extension ScalarSyntax where Value == AdminTarget {
    /// The syntax of `--admin`: that of `admin.address` in the file.
    package static var adminTarget: Self {
        ScalarSyntax<ListenerSettings?>.adminListener.mapped(to: { AdminTarget($0) }, from: \.listener)
    }
}

extension ScalarSyntax where Value == ListenerSettings? {
    /// An address with or without a scheme, or `off`. At a Unix socket there is no TLS.
    static var adminListener: Self {
        let listeners = ScalarSyntax<ListenerSettings>.listener
        return .optional(
            ScalarSyntax<ListenerSettings>(listeners.form, write: listeners.write) { text in
                guard !text.lowercased().hasPrefix("https://unix:") else {
                    return .refused("a Unix socket needs no TLS; write it as `unix:/path`")
                }
                return listeners.parse(text)
            }, "off")
    }
}

extension AdminSettings {
    /// The address, and whether clients speak TLS there.
    var listener: ListenerSettings? {
        get { address.map { ListenerSettings($0, isSecure: isSecure) } }
        set { (address, isSecure) = (newValue?.address, newValue?.isSecure ?? false) }
    }
}

extension ListenerSettings {
    fileprivate init(_ address: SocketAddress, isSecure: Bool) {
        self.init(address)
        self.isSecure = isSecure
    }
}

extension Settings {
    /// These settings, with the values of the given flags.
    package func overridden(by flags: Overrides) -> Settings {
        var settings = self
        if !flags.listeners.isEmpty { settings.proxy.listen = flags.listeners }
        if let identity = flags.identity { settings.proxy.tls.identities = [identity] }
        if !flags.servers.isEmpty {
            if settings.upstreams.isEmpty { settings.upstreams = [.local] }
            settings.upstreams[0].servers = flags.servers
        }
        if !flags.engines.isEmpty { settings.proxy.shared.engines = flags.engines }
        if let admin = flags.admin { settings.admin.listener = admin.listener }
        if let workers = flags.workers { settings.proxy.workers = workers }
        if let memory = flags.memory { settings.storage.memory = memory }
        if let logLevel = flags.logLevel { settings.logLevel = logLevel }
        if let accessLog = flags.accessLog { settings.accessLog.target = accessLog }
        return settings
    }

    /// The settings without a file. They have no admin listener: none was asked for, and its default port may be taken.
    package static var withoutFile: Settings {
        var settings = Settings()
        settings.admin.address = nil
        return settings
    }
}
