import Glibc

/// Descriptors of sockets that have ended: a few are closed in each iteration of the loop, in the order in which they
/// ended, the first ones on the spot.
///
/// Closing a TCP connection costs the kernel some 10 µs. When thousands of peers leave together, whoever asks for
/// something meanwhile would wait for all of them: a loop serves sockets in the order in which they became ready.
///
/// What waits here is no longer watched, but holds its descriptor and what the kernel keeps for it: its peer, if that has
/// not left by itself, takes the connection for open, and what it sends is lost. So who ends connections of peers that
/// are still there asks first (`EventLoop.postponesEnd`). The queue never grows by connections that
/// come and go: for each that is opened one is closed, and there are never more descriptors than were
/// in use at the same time before.
///
/// Of one loop, on its thread. Whatever is left is closed with it.
struct ClosingQueue: ~Copyable {
    /// Descriptors closed at once where they are short: a millisecond.
    static let whenShort = 64

    private var waiting: [Int32] = []
    /// The first of `waiting` that is not closed yet.
    private var next = 0
    private var pace = ClosingPace(tick: DeadlineWheel.Settings.tick)

    deinit { for descriptor in waiting[next...] { _ = Glibc.close(descriptor) } }

    var isEmpty: Bool { next == waiting.count }

    private var count: Int { waiting.count - next }

    /// Whether a socket that could be ended now had better be ended a tick later.
    mutating func postpones(at now: Int64) -> Bool { pace.postpones(behind: count, at: now) }

    /// A socket was opened: one more may be closed in this iteration.
    mutating func noteOpened() { pace.noteOpened() }

    /// Takes the descriptor over, which nothing watches any more.
    mutating func close(_ descriptor: Int32) {
        guard isEmpty, pace.closesMore(of: 0) else { return waiting.append(descriptor) }
        pace.noteClosed()
        _ = Glibc.close(descriptor)
    }

    /// Closes what may still be closed in this iteration; the next one begins.
    mutating func iterationEnds() {
        while pace.closesMore(of: count), closeNext() {}
        pace.iterationEnds(leaving: count)
        compact()
    }

    /// Closes some ahead of their turn, since descriptors are short.
    /// - Returns: whether there was any.
    mutating func closeSome() -> Bool {
        guard closeNext() else { return false }
        for _ in 1..<Self.whenShort { guard closeNext() else { break } }
        compact()
        return true
    }

    /// The loop ends.
    mutating func closeAll() {
        while closeNext() {}
        compact()
    }

    private mutating func closeNext() -> Bool {
        guard !isEmpty else { return false }
        pace.noteClosed()
        _ = Glibc.close(waiting[next])
        next += 1
        return true
    }

    private mutating func compact() {
        if isEmpty {
            // A rare burst does not keep its memory forever.
            waiting.removeAll(keepingCapacity: waiting.capacity <= 4096)
            next = 0
        } else if next > 4096, next > waiting.count / 2 {
            waiting.removeFirst(next)
            next = 0
        }
    }
}
