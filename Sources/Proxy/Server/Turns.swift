import Libevent

/// Serves crowds in turns: when thousands of waiters get their response at once, the loop's other clients get a look-in between.
///
/// Confined to its loop. The first of an iteration are served on the spot, so that ordinary traffic is not put off.
final class Turns {
    /// Served before the loop's other work: a few milliseconds of it.
    static let turn = 256

    private let loop: EventLoop
    private var waiting: ArraySlice<() -> Void> = []
    private var served = 0

    init(loop: EventLoop) { self.loop = loop }

    /// Whether the caller may be served on the spot; if not, it is `put` off.
    func isMine() -> Bool {
        guard waiting.isEmpty, served < Self.turn else { return false }
        if served == 0 { loop.afterBatch { [self] in served = 0 } }
        served += 1
        return true
    }

    /// Serves it in a later turn.
    func put(_ job: @escaping () -> Void) {
        if waiting.isEmpty { goOnLater() }
        waiting.append(job)
    }

    private func goOnLater() {
        let bound = LoopBound(self, on: loop)
        loop.handle.post { bound.value.goOn() }
    }

    private func goOn() {
        let due = waiting.prefix(Self.turn)
        waiting = waiting.dropFirst(Self.turn)
        if waiting.isEmpty { waiting = [] } else { goOnLater() }
        for job in due { job() }
    }
}
