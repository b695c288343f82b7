import Bytes
import Libevent

/// Who on this loop waits for which body to grow. One notice a loop and batch of chunks, however many clients wait.
///
/// Confined to its loop. A body is followed from the first client that waits for it until it ends.
final class BodyFollowers {
    /// Somebody who waits.
    protocol Follower: AnyObject {
        /// The body grew or ended. On the loop; also when the follower has gone away meanwhile.
        func bodyGrew()
    }

    private struct Group {
        let body: GrowingBody
        var waiting: [any Follower]
    }

    private var groups: [ObjectIdentifier: Group] = [:]
    private let loop: EventLoop
    /// Names this loop among a body's followers.
    private let index: Int
    private let turns: Turns

    init(loop: EventLoop, index: Int, turns: Turns) {
        self.loop = loop
        self.index = index
        self.turns = turns
    }

    /// `follower` has read all there is: it is called once when there is more, or the end.
    func wait(_ follower: any Follower, for body: GrowingBody) {
        let id = ObjectIdentifier(body)
        if groups[id] != nil {
            groups[id]?.waiting.append(follower)
            return
        }
        groups[id] = Group(body: body, waiting: [follower])
        let bound = LoopBound(self, on: loop)
        let handle = loop.handle
        body.follow(id: index) { handle.post { bound.value.noticed(id) } }
        // The body may have grown between the follower's look and this: look once more.
        handle.post { bound.value.noticed(id) }
    }

    private func noticed(_ id: ObjectIdentifier) {
        guard let body = groups[id]?.body else { return }
        // Before reading, so that what comes meanwhile is noticed again.
        body.rearm(id: index)
        let hasEnded = body.phase != .open
        var due: [any Follower] = []
        if var group = groups[id] {
            swap(&due, &group.waiting)
            groups[id] = hasEnded ? nil : group
        }
        for follower in due { if turns.isMine() { follower.bodyGrew() } else { turns.put { follower.bodyGrew() } } }
    }
}
