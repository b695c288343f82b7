import Coalescing
import Routing
import Upstream

/// Origins of replaced settings. Their fetches continue for the requests that wait for them, and are added to the
/// counts of the current upstream with the same name. Owned by the server, confined to the control loop.
struct FormerOrigins {
    private(set) var origins: [Origin] = []
    /// By name: the counts of the former origins that were dropped.
    private var counted: [String: OperationQueueSnapshot] = [:]

    /// Replaces the origins `old` by `new`. Some may be in both.
    ///
    /// Drops the origins replaced earlier that have no other reference. An origin without fetches in flight may not be
    /// dropped for that alone: a request that was routed to it earlier, and whose content is still arriving or that is
    /// about to fetch for itself, will begin a fetch there.
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
        // Every loop may still have the settings with the origins that are replaced now, so all of `old` are kept.
        origins = kept + old.filter { former in !new.contains { $0 === former } }
        let names = Set(new.map(\.settings.name))
        counted = counted.filter { names.contains($0.key) }
    }

    /// The counts of `origin`, and of the former origins with its name, with their fetches in flight.
    func snapshot(with origin: Origin) -> OperationQueueSnapshot {
        var snapshot = origin.fetches.snapshot
        if let counted = counted[origin.settings.name] { snapshot.add(counted) }
        for former in origins where former.settings.name == origin.settings.name {
            snapshot.add(former.fetches.snapshot)
        }
        return snapshot
    }
}
