import Bytes
import Libevent

/// The clients of this loop to which all arrived bytes of a body are sent, and which wait for that body to grow. A body
/// posts one notice per loop and batch of chunks, for any number of waiting clients.
///
/// Confined to its loop. A body is followed from its first waiting client until its end.
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
    /// The group joined last: clients that wait for the same body mostly arrive one after the other.
    private var latest: Group?
    private let loop: EventLoop
    /// The id of this loop among a body's followers.
    private let index: Int
    private let turns: Turns

    init(loop: EventLoop, index: Int, turns: Turns) {
        self.loop = loop
        self.index = index
        self.turns = turns
    }

    /// `follower` has read all arrived bytes: it gets one turn when more bytes arrive, or the end.
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
        // The body may have grown between the follower's last read and `follow`: check once more.
        handle.post { bound.value.noticed(id) }
    }

    private func noticed(_ id: ObjectIdentifier) {
        guard let group = groups[id] else { return }
        // Rearm before reading, so that bytes that arrive meanwhile cause another notice.
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
