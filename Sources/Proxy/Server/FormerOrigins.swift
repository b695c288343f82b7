import Coalescing
import Upstream

/// Origins of settings that were replaced: their fetches go on for those who wait, and count with those of the upstream
/// that has their name. Belongs to the server, confined to the control loop.
struct FormerOrigins {
    private(set) var origins: [Origin] = []
    /// By name: the counts of those that are gone.
    private var counted: [String: OperationQueueSnapshot] = [:]

    /// The origins `new` take the place of `old`, of which some may be the same.
    ///
    /// Of those that were replaced earlier it drops the ones that nothing else refers to. Having nothing in flight would
    /// not be enough: a request that was routed before, whose content is still to come or that is about to fetch for
    /// itself, will begin a fetch there.
    mutating func replaced(_ old: [Origin], by new: [Origin]) {
        var kept: [Origin] = []
        for index in origins.indices {
            if isKnownUniquelyReferenced(&origins[index]) {
                let (name, snapshot) = (origins[index].settings.name, origins[index].fetches.snapshot)
                counted[name, default: OperationQueueSnapshot()].add(snapshot)
            } else {
                kept.append(origins[index])
            }
        }
        // Every loop may still have the settings of those that are replaced now.
        origins = kept + old.filter { former in !new.contains { $0 === former } }
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
