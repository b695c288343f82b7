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

    /// Followers served before the loop's other work: a few milliseconds of it.
    private static let turn = 256

    private var groups: [ObjectIdentifier: Group] = [:]
    private let loop: EventLoop
    /// Names this loop among a body's followers.
    private let index: Int

    init(loop: EventLoop, index: Int) {
        self.loop = loop
        self.index = index
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
        serve(due[...])
    }

    /// A crowd is served in turns, so that other clients of the loop get theirs in between.
    private func serve(_ due: ArraySlice<any Follower>) {
        for follower in due.prefix(Self.turn) { follower.bodyGrew() }
        let rest = due.dropFirst(Self.turn)
        guard !rest.isEmpty else { return }
        let bound = LoopBound((self, rest), on: loop)
        bound.handle.post {
            let (followers, rest) = bound.value
            followers.serve(rest)
        }
    }
}
