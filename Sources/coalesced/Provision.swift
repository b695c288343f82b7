import Configuration
import Libevent
import Logging
import Proxy
import Storage
import Upstream

/// What the machine gives the program, against what the settings want of it.
struct Provision {
    /// Files that may be open.
    let descriptors: Int
    /// How many workers were started, whatever a reload says.
    private let workers: Int
    private let listeners: Int
    /// What was told of them last; `nil`: there are enough.
    private var told: (wanted: Int, most: Int)?

    init(descriptors: Int, startedWith settings: Settings) {
        self.descriptors = descriptors
        workers = settings.proxy.workers > 0 ? settings.proxy.workers : processorCount()
        listeners = settings.proxy.listeners.count
    }

    /// Descriptors open without any connection: standard streams, logs, the control loop with the admin listener, and
    /// its connections and name look-ups now and then.
    private static let ownDescriptors = 32
    /// Descriptors of one worker, without listeners: its loop's and its resolver's.
    private static let descriptorsPerWorker = 6

    /// Open when nobody is connected.
    private var withoutConnections: Int {
        Self.ownDescriptors + workers * (Self.descriptorsPerWorker + listeners)
    }

    /// Descriptors for connections to origins: a miss takes one beside the client's.
    private func forOrigins(in settings: Settings) -> Int {
        settings.upstreams.reduce(0) { $0 + $1.maxConcurrentFetches + workers * $1.maxIdleConnections }
    }

    /// Client connections for which there are descriptors, beside those for origins.
    func mostClients(in settings: Settings) -> Int {
        let left = descriptors - withoutConnections
        return max(1, left - min(left / 2, forOrigins(in: settings)))
    }

    /// Fewer clients than these are worth a line where the operator chose no number.
    private static let fewClients = 2000

    /// The settings with no more clients than there are descriptors for, and room for all of these in the kernel's table.
    /// What is missing is told when it changes, not with every reload.
    mutating func bounded(_ settings: Settings, telling log: Logger) -> Settings {
        let (most, wanted) = (mostClients(in: settings), settings.proxy.clients.maxConnections)
        growDescriptorTable(to: min(descriptors, withoutConnections + min(most, wanted) + forOrigins(in: settings)))
        guard most < wanted else {
            told = nil
            return settings
        }
        if !settings.statesMaxConnections, most >= Self.fewClients {
            // Nobody asked for so many; `status` tells how many there may be.
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

    /// The kernel promises more memory than there is; when the missing part is used, it kills the program.
    static func checkMemory(for settings: Settings, telling log: Logger) {
        let wanted = settings.storage.memory
        guard let least = System.memoryBounds().min(by: { $0.bytes < $1.bytes }), least.bytes < wanted else { return }
        log.warning(
            "storage.memory exceeds the memory available to the process, which may be killed when the cache fills; lower it",
            metadata: ["memory": "\(wanted)", "available": "\(least.bytes)", "bound": "\(least.name)"])
    }
}
