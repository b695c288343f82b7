import Glibc

/// Descriptors of sockets that have ended: a few are closed in each iteration of the loop, in the order in which they
/// ended, the first ones on the spot.
///
/// Closing a TCP connection costs the kernel some 10 µs. When thousands of peers leave together, whoever asks for
/// something meanwhile would wait for all of them: a loop serves sockets in the order in which they became ready.
///
/// What waits here is no longer watched, but holds its descriptor and what the kernel keeps for it: its peer, if that has
/// not left by itself, takes the connection for open, and what it sends is lost. So who ends connections of peers that
/// are still there does it by the hundred at most (`EventLoop.isClosingMany`). The queue never grows by connections that
/// come and go: for each that is opened one is closed, and there are never more descriptors than were
/// in use at the same time before.
///
/// Of one loop, on its thread. Whatever is left is closed with it.
struct ClosingQueue: ~Copyable {
    /// Descriptors closed in one iteration if fewer were opened: some 40 µs.
    static let least = 4
    /// Descriptors closed at once where they are short: a millisecond.
    static let whenShort = 64
    /// As many wait that what is not urgent had better be ended later: some hundredths of a second, on a busy loop.
    static let many = 256

    private var waiting: [Int32] = []
    /// Of `waiting`, the first that is not closed yet.
    private var next = 0
    /// In this iteration.
    private var opened = 0
    private var closed = 0

    deinit { for descriptor in waiting[next...] { _ = Glibc.close(descriptor) } }

    var isEmpty: Bool { next == waiting.count }

    var isLong: Bool { waiting.count - next >= Self.many }

    private var closesMore: Bool { closed < max(Self.least, opened) }

    /// A socket was opened: one more may be closed in this iteration.
    mutating func noteOpened() { opened += 1 }

    /// Takes the descriptor over, which nothing watches any more.
    mutating func close(_ descriptor: Int32) {
        guard isEmpty, closesMore else { return waiting.append(descriptor) }
        closed += 1
        _ = Glibc.close(descriptor)
    }

    /// Closes what may still be closed in this iteration; the next one begins.
    mutating func iterationEnds() {
        while closesMore, closeNext() {}
        (opened, closed) = (0, 0)
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
        closed += 1
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
