import Glibc

/// Descriptors of sockets that have ended: the first of an iteration are closed on the spot, the others a few in each
/// of the next iterations.
///
/// Closing a TCP connection costs the kernel some 10 µs. When thousands of peers leave together, whoever asks for
/// something meanwhile would wait for all of them: a loop serves sockets in the order in which they became ready.
/// What waits here costs no more than its descriptor; it is no longer watched.
///
/// Of one loop, on its thread. Whatever is left is closed with it.
struct ClosingQueue: ~Copyable {
    /// Descriptors closed in one iteration: some 40 µs.
    static let perIteration = 4

    private var waiting: [Int32] = []
    /// Of `waiting`, the first that is not closed yet.
    private var next = 0
    private var closedNow = 0

    deinit { for descriptor in waiting[next...] { _ = Glibc.close(descriptor) } }

    var isEmpty: Bool { next == waiting.count }

    /// Takes the descriptor over, which nothing watches any more.
    mutating func close(_ descriptor: Int32) {
        guard closedNow >= Self.perIteration else {
            closedNow += 1
            _ = Glibc.close(descriptor)
            return
        }
        waiting.append(descriptor)
    }

    /// Closes what may be closed in this iteration; the next one begins.
    mutating func iterationEnds() {
        let end = min(waiting.count, next + Self.perIteration - closedNow)
        for index in next..<end { _ = Glibc.close(waiting[index]) }
        next = end
        closedNow = 0
        if isEmpty { forget() }
    }

    /// Closes all, because the loop ends or descriptors are short.
    mutating func closeAll() {
        for descriptor in waiting[next...] { _ = Glibc.close(descriptor) }
        forget()
    }

    private mutating func forget() {
        // A rare burst does not keep its memory forever.
        waiting.removeAll(keepingCapacity: waiting.capacity <= 4096)
        next = 0
    }
}
