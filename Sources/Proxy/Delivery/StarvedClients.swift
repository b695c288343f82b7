import Bytes
import Libevent

/// Which clients of this loop have sent all that is there of which body, and wait for it to grow. One notice per loop
/// and batch of chunks, however many clients wait.
///
/// Confined to its loop. A body is followed from the first client that waits for it until it ends.
final class StarvedClients {
    private final class Group {
        let body: GrowingBody
        let waiting: Exclusive<[any TurnTaker]>

        init(body: GrowingBody, first: any TurnTaker) {
            self.body = body
            waiting = Exclusive([first])
        }
    }

    private var groups: [ObjectIdentifier: Group] = [:]
    /// The one that was joined last: a crowd comes one after the other.
    private var latest: Group?
    private let loop: EventLoop
    /// Names this loop among a body's followers.
    private let index: Int
    private let turns: Turns

    init(loop: EventLoop, index: Int, turns: Turns) {
        self.loop = loop
        self.index = index
        self.turns = turns
    }

    /// `follower` has read all there is: its turn comes once when there is more, or the end.
    func wait(_ follower: any TurnTaker, for body: GrowingBody) {
        if let latest, latest.body === body { return latest.waiting.use { $0.append(follower) } }
        let id = ObjectIdentifier(body)
        if let group = groups[id] {
            group.waiting.use { $0.append(follower) }
            latest = group
            return
        }
        let group = Group(body: body, first: follower)
        groups[id] = group
        latest = group
        let bound = LoopBound(self, on: loop)
        let handle = loop.handle
        body.follow(id: index) { handle.post { bound.value.noticed(id) } }
        // The body may have grown between the follower's look and this: look once more.
        handle.post { bound.value.noticed(id) }
    }

    private func noticed(_ id: ObjectIdentifier) {
        guard let group = groups[id] else { return }
        // Before reading, so that what comes meanwhile is noticed again.
        group.body.rearm(id: index)
        if group.body.phase != .open {
            groups[id] = nil
            if latest === group { latest = nil }
        }
        var due: [any TurnTaker] = []
        group.waiting.use { swap(&due, &$0) }
        for follower in due { turns.serve(follower) }
    }
}
