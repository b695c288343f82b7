import Coalescing
import Upstream

/// Origins of settings that were replaced: their fetches go on for those who wait, and count with those of the upstream
/// that has their name. Belongs to the server, confined to the control loop.
struct FormerOrigins {
    private(set) var origins: [Origin] = []
    /// By name: the counts of those that have nothing in flight any more.
    private var counted: [String: OperationQueueSnapshot] = [:]

    /// The origins `new` take the place of `old`, of which some may be the same.
    mutating func replaced(_ old: [Origin], by new: [Origin]) {
        origins.removeAll { origin in
            let snapshot = origin.fetches.snapshot
            guard snapshot.inFlight == 0 else { return false }
            counted[origin.settings.name, default: OperationQueueSnapshot()].add(snapshot)
            return true
        }
        // Added afterwards: until every loop has the new settings, a fetch may still begin at an old origin.
        origins += old.filter { former in !new.contains { $0 === former } }
        let names = Set(new.map(\.settings.name))
        counted = counted.filter { names.contains($0.key) }
    }

    /// What `origin` and those before it that had its name have done, and have in flight.
    func snapshot(with origin: Origin) -> OperationQueueSnapshot {
        var snapshot = origin.fetches.snapshot
        if let counted = counted[origin.settings.name] { snapshot.add(counted) }
        for former in origins where former.settings.name == origin.settings.name {
            snapshot.add(former.fetches.snapshot)
        }
        return snapshot
    }
}
