/// The replies that a connection waits for, in the order of their commands. A value without I/O; times are nanoseconds
/// of the loop's clock.
struct AwaitedReplies: ~Copyable {
    struct Entry {
        /// `nil` once it was called: the reply is late, and will be dropped.
        var completion: ((RedisReply) -> Void)?
        let sent: Int64
        /// When the reply is late; `.max`: never.
        let deadline: Int64
        /// Whether the command is one of the connection itself.
        let isOwn: Bool
    }

    private var entries: [Entry] = []
    /// The index of the oldest entry; the replies of all before it have come.
    private var first = 0

    var count: Int { entries.count - first }

    /// When the oldest command was sent; `nil` if no reply is awaited.
    var oldest: Int64? { first < entries.count ? entries[first].sent : nil }

    /// The first time at which a reply is late; `nil`: there is none.
    var nextDeadline: Int64? {
        var next: Int64?
        for index in first..<entries.count where entries[index].completion != nil {
            next = min(next ?? .max, entries[index].deadline)
        }
        return next == .max ? nil : next
    }

    mutating func append(_ entry: Entry) { entries.append(entry) }

    /// Removes the oldest entry, whose reply has come.
    mutating func popFirst() -> Entry? {
        guard first < entries.count else { return nil }
        let entry = entries[first]
        entries[first].completion = nil
        first += 1
        if first == entries.count {
            entries.removeAll(keepingCapacity: first <= 1024)
            first = 0
        } else if first >= 1024, first * 2 >= entries.count {
            entries.removeFirst(first)
            first = 0
        }
        return entry
    }

    /// The entries whose replies are late at `now` and were not before.
    mutating func takeLate(at now: Int64) -> [Entry] {
        var late: [Entry] = []
        for index in first..<entries.count where entries[index].deadline <= now {
            guard entries[index].completion != nil else { continue }
            late.append(entries[index])
            entries[index].completion = nil
        }
        return late
    }

    /// All entries whose completions were not called, of a connection that has ended.
    mutating func takeAll() -> [Entry] {
        defer { (entries, first) = ([], 0) }
        return entries[first...].filter { $0.completion != nil }
    }
}
