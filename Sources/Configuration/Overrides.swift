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
    /// The certificate and its key in place of all those of the file; not read yet.
    package var identity: TLSIdentity?
    /// The servers that replace those of the first upstream, which keeps its name and limits.
    package var servers: [UpstreamServer] = []
    /// The engine of the shared tier, or nodes of it, in place of those of the file.
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
    case address(SocketAddress)

    var address: SocketAddress? {
        switch self {
        case .off: nil
        case .address(let address): address
        }
    }
}

extension ScalarSyntax where Value == AdminTarget {
    /// The syntax of `--admin`: that of `admin.address` in the file.
    package static var adminTarget: Self {
        ScalarSyntax<SocketAddress?>.adminAddress.mapped(
            to: { $0.map { .address($0) } ?? .off }, from: \.address)
    }
}

extension ScalarSyntax where Value == SocketAddress? {
    static var adminAddress: Self { .optional(.address, "off") }
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
        if let admin = flags.admin { settings.admin.address = admin.address }
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
