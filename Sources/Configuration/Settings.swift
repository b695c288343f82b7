package import Admin
import Libevent
package import Routing
package import Storage
package import Telemetry
package import Upstream

/// All settings of an operator: the result of a configuration file and the flags.
package struct Settings: Sendable, Equatable {
    /// The lowest level that the diagnostics log shows.
    package var logLevel = LogLevel.info
    /// How long the program that takes the place of this one may take until it accepts clients: longer than reading the
    /// largest file and starting the workers take on a busy machine.
    package var upgradeTimeout: Duration = .seconds(30)
    package var proxy = ProxySettings()
    package var storage = StorageSettings()
    /// At least one; their names differ.
    package var upstreams = [UpstreamSettings.local]
    package var admin = AdminSettings()
    package var accessLog = AccessLogSettings()
    /// Whether `clients.max-connections` is in the file. An operator who wrote the key relies on its value, even if it
    /// is the default.
    package var statesMaxConnections = false
    /// Warnings about values that are valid but may not be intended, in the order of the file. For `check` and the
    /// diagnostics log.
    package var warnings: [Mistake] = []

    package init() {}
}

/// The levels of the diagnostics log, with swift-log's names.
package enum LogLevel: String, Sendable, CaseIterable {
    case debug, info, notice, warning, error, critical
}

extension Settings {
    /// The mistake if clients and the admin listener have the same address, which only one of them can listen on.
    package var listenerMistake: String? {
        guard let address = admin.address,
            let taken = proxy.listeners.first(where: { $0.covers(address) || address.covers($0) })
        else { return nil }
        let both =
            taken == address
            ? "`listen` and `admin.address` are both \(address)"
            : "`listen` is \(taken) and `admin.address` \(address), of which one takes the other's connections"
        return "\(both); choose another for one of them"
    }

    /// The mistake if a server has the address of a client listener: each request to it would come back to this proxy.
    /// Other names and addresses of this machine are not known here; `LoopDetection` finds those loops.
    /// - Returns: the mistake, with the index of its upstream in `upstreams`.
    package var serverMistake: (upstream: Int, message: String)? {
        for (index, upstream) in upstreams.enumerated() {
            for server in upstream.servers {
                guard let address = server.address,
                    let own = proxy.listeners.first(where: {
                        $0 == address || address.isLoopback && $0.covers(address)
                    })
                else { continue }
                return (
                    index,
                    "clients connect at \(own), which makes \(server) this proxy itself; give the address of the origin"
                )
            }
        }
        return nil
    }

    /// The keys whose values differ in `new` and cannot change while the proxy runs (`Key.isReadAtStart`), in the order
    /// of the file.
    package func keysAtStart(changedBy new: Settings) -> [String] {
        KeyTable.all.flatMap { key in
            let keys = key.isReadAtStart ? [("", key)] : key.children.map { ("\(key.name).", $0) }
            return keys.filter { $1.isReadAtStart && $1.write(self) != $1.write(new) }.map { $0 + $1.name }
        }
    }
}
