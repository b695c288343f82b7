import Glibc

/// The descriptors of ended sockets. Each iteration of the loop closes a few of them, in the order in which the sockets
/// ended; the first ones are closed at once.
///
/// Closing a TCP connection costs the kernel about 10 µs. A loop serves sockets in the order in which they became
/// ready. So when thousands of peers leave together, a client that sends a request meanwhile would wait until all of
/// their sockets are closed.
///
/// A waiting socket is no longer watched, but keeps its descriptor and its memory in the kernel. A peer that has not
/// left takes the connection for open, and the bytes that it sends are lost. So code that ends a connection whose peer
/// is still there asks first (`EventLoop.postponesEnd`). Connections that come and go never make the queue grow: for
/// each opened socket one is closed, so there are never more descriptors than were in use at the same time before.
///
/// Belongs to one loop and its thread. Dropping the queue closes the descriptors that are left.
struct ClosingQueue: ~Copyable {
    /// The number of descriptors closed at once when descriptors are short. Closing them takes about a millisecond.
    static let whenShort = 64

    private var waiting: [Int32] = []
    /// The first of `waiting` that is not closed yet.
    private var next = 0
    private var pace = ClosingPace(tick: DeadlineWheel.Settings.tick)

    deinit { for descriptor in waiting[next...] { _ = Glibc.close(descriptor) } }

    var isEmpty: Bool { next == waiting.count }

    private var count: Int { waiting.count - next }

    /// Whether a connection that could end now must ask again a tick later.
    mutating func postpones(at now: Int64) -> Bool { pace.postpones(behind: count, at: now) }

    /// A socket was opened: one more may be closed in this iteration.
    mutating func noteOpened() { pace.noteOpened() }

    /// Takes over a descriptor that is no longer watched.
    mutating func close(_ descriptor: Int32) {
        guard isEmpty, pace.closesMore(of: 0) else { return waiting.append(descriptor) }
        pace.noteClosed()
        _ = Glibc.close(descriptor)
    }

    /// Closes as many sockets as this iteration may still close. Then the next iteration begins.
    mutating func iterationEnds() {
        while pace.closesMore(of: count), closeNext() {}
        pace.iterationEnds(leaving: count)
        compact()
    }

    /// Closes some sockets ahead of their turn, since descriptors are short.
    /// - Returns: whether there were any.
    mutating func closeSome() -> Bool {
        guard closeNext() else { return false }
        for _ in 1..<Self.whenShort { guard closeNext() else { break } }
        compact()
        return true
    }

    /// Closes all sockets, when the loop ends.
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
            // Release the memory of a rare burst.
            waiting.removeAll(keepingCapacity: waiting.capacity <= 4096)
            next = 0
        } else if next > 4096, next > waiting.count / 2 {
            waiting.removeFirst(next)
            next = 0
        }
    }
}
