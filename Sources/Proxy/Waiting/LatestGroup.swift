import Libevent

/// The group that the next plain request for the same fetch joins without asking the table, on one loop. Owned by the
/// loop's `ClientConnections`.
final class LatestGroup {
    private(set) var group: WaiterGroup?

    /// Lets the next requests join `group`; only until the end of this iteration if none does.
    func offer(_ group: WaiterGroup, on loop: EventLoop) {
        self.group = group
        group.whenClosed = { [self, unowned group] in
            if self.group === group { self.group = nil }
        }
        loop.atIterationEnd { [self] in
            if self.group === group, !group.wasFollowed { self.group = nil }
        }
    }

    func forget() { group = nil }
}
