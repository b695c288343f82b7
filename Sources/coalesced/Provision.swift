import Configuration
import Libevent
import Logging
import Routing
import Storage
import Upstream

/// Compares the settings with the descriptors and the memory that the machine gives the program.
struct Provision {
    /// The limit of open descriptors.
    let descriptors: Int
    /// The number of workers started; a reload does not change it.
    private let workers: Int
    /// The last notice about missing descriptors; `nil` if there are enough.
    private var told: (wanted: Int, most: Int)?

    init(descriptors: Int, startedWith settings: Settings) {
        self.descriptors = descriptors
        workers = settings.proxy.workers > 0 ? settings.proxy.workers : processorCount()
    }

    /// The descriptors that are open without any connection: standard streams, logs, and the control loop with the
    /// admin listener. Also some for admin connections and name look-ups.
    private static let ownDescriptors = 32
    /// The descriptors of one worker without its listeners: its loop's and its resolver's.
    private static let descriptorsPerWorker = 6

    /// The descriptors that are open without any connection, over all workers.
    private func withoutConnections(in settings: Settings) -> Int {
        Self.ownDescriptors + workers * (Self.descriptorsPerWorker + settings.proxy.listeners.count)
    }

    /// The descriptors for connections to origins: a miss needs one in addition to the client's.
    private func forOrigins(in settings: Settings) -> Int {
        settings.upstreams.reduce(0) { $0 + $1.maxConcurrentFetches + workers * $1.maxIdleConnections }
    }

    /// The number of client connections for which descriptors are left, after those for origins.
    func mostClients(in settings: Settings) -> Int {
        let left = descriptors - withoutConnections(in: settings)
        return max(1, left - min(left / 2, forOrigins(in: settings)))
    }

    /// If fewer clients than these can connect, a notice is logged even if the operator chose no number.
    private static let fewClients = 2000

    /// Limits the clients in the settings to the descriptors, and makes room for all descriptors in the kernel's table.
    /// Logs a lack of descriptors when it changes, not at every reload.
    mutating func bounded(_ settings: Settings, telling log: Logger) -> Settings {
        let (most, wanted) = (mostClients(in: settings), settings.proxy.clients.maxConnections)
        growDescriptorTable(
            to: min(descriptors, withoutConnections(in: settings) + min(most, wanted) + forOrigins(in: settings)))
        guard most < wanted else {
            told = nil
            return settings
        }
        if !settings.statesMaxConnections, most >= Self.fewClients {
            // The operator did not ask for so many clients; `status` shows the limit.
            told = nil
        } else if told.map({ $0 != (wanted, most) }) ?? true {
            log.notice(
                "the open-file limit is too low for clients.max-connections; raise the limit (ulimit -n, or LimitNOFILE in systemd) or lower max-connections",
                metadata: ["limit": "\(descriptors)", "max-connections": "\(wanted)", "admitted": "\(most)"])
            told = (wanted, most)
        }
        var settings = settings
        settings.proxy.clients.maxConnections = most
        return settings
    }

    /// Warns about too little memory. The kernel promises more memory than there is, and kills the program when it uses
    /// the missing part.
    static func checkMemory(for settings: Settings, telling log: Logger) {
        let wanted = settings.storage.memory
        guard let least = System.memoryBounds().min(by: { $0.bytes < $1.bytes }), least.bytes < wanted else { return }
        log.warning(
            "storage.memory exceeds the memory available to the process, which may be killed when the cache fills; lower it",
            metadata: ["memory": "\(wanted)", "available": "\(least.bytes)", "bound": "\(least.name)"])
    }
}
