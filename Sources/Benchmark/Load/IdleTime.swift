/// What a thread that spins spends on finding nothing to do.
struct IdleTime {
    /// Nanoseconds of the thread's CPU.
    private(set) var total: Int64 = 0
    private var since: Int64?

    /// To be called after each poll. Where it found nothing, another thread of this core may go first.
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
