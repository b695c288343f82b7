/// The CPU time that a spinning thread spends without finding work.
struct IdleTime {
    /// Nanoseconds of the thread's CPU.
    private(set) var total: Int64 = 0
    private var since: Int64?

    /// Call after each poll. If the poll found no work, another thread of this core may go first.
    mutating func polled(foundNothing: Bool) {
        if foundNothing {
            if since == nil { since = System.threadTime }
            System.yield()
        } else if let began = since {
            total += System.threadTime - began
            since = nil
        }
    }
}
