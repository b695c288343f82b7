import Glibc

/// The descriptors of ended sockets. Each iteration of the loop closes a few of them, in the order in which the sockets
/// ended; the first ones are closed at once.
///
/// Closing a TCP connection costs the kernel about 10 µs. A loop serves sockets in the order in which they became
/// ready. So when thousands of peers leave together, a client that sends a request meanwhile would wait until all of
/// their sockets are closed.
///
/// A waiting socket is no longer watched, but keeps its descriptor and its memory in the kernel. A peer that has not
/// left takes the connection for open, and the bytes that it sends are lost. So a loop never ends more such connections
/// in an iteration than it closes: no more than `share` deadlines are reached (`DeadlineWheel`). Connections that come
/// and go never make the queue grow either: for each opened socket one is closed, so there are never more descriptors
/// than were in use at the same time before.
///
/// Belongs to one loop and its thread. Dropping the queue closes the descriptors that are left.
struct ClosingQueue: ~Copyable {
    /// The number of descriptors closed at once when descriptors are short. Closing them takes about a millisecond.
    static let whenShort = 64

    /// The number of sockets closed in one iteration even if fewer were opened: as many as deadlines are reached. Closing
    /// them takes about 0.2 ms, after which all other sockets have their turn.
    static let share = DeadlineWheel.Settings.share

    private var waiting: [Int32] = []
    /// The first of `waiting` that is not closed yet.
    private var next = 0
    /// The numbers of sockets opened and closed in this iteration.
    private var opened = 0
    private var closed = 0

    deinit { for descriptor in waiting[next...] { _ = Glibc.close(descriptor) } }

    var isEmpty: Bool { next == waiting.count }

    private var mayCloseMore: Bool { closed < max(Self.share, opened) }

    /// A socket was opened: one more may be closed in this iteration.
    mutating func noteOpened() { opened += 1 }

    /// Takes over a descriptor that is no longer watched.
    mutating func close(_ descriptor: Int32) {
        guard isEmpty, mayCloseMore else { return waiting.append(descriptor) }
        closed += 1
        _ = Glibc.close(descriptor)
    }

    /// Closes as many sockets as this iteration may still close. Then the next iteration begins.
    mutating func iterationEnds() {
        while mayCloseMore, closeNext() {}
        (opened, closed) = (0, 0)
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
        closed += 1
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
