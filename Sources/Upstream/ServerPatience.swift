/// How long a server keeps a connection open on which it waits for a request, as far as one loop has seen. A request
/// that cannot be sent twice goes by that: it takes no idle connection that may be closing.
///
/// ```
/// unknown ─closed→ known (shortest)           ─closed sooner→ known (shorter)
/// known ─closed under a request, though trusted→ nothing is trusted (0) ─enough in a row that lasted→ unknown
/// known ─enough in a row that lasted twice as long→ known (the shortest of those that were closed), or unknown
/// ```
///
/// The second line is for a server that was started anew, which closes its connections at any age, and for one whose
/// settings changed. A value, without I/O; times are in nanoseconds. Of one server.
struct ServerPatience {
    /// What a connection of a server may wait that nothing is known of: servers that close idle connections by the clock
    /// do so after 2 s (gunicorn) or more.
    static let atFirst: Int64 = 1_000_000_000
    /// How many connections in a row must have lasted twice as long as the shortest one: those of a server that looks at
    /// its clock only now and then also last different times.
    static let enoughToDoubt = 16

    /// The shortest time after which the server has closed an idle connection; `nil`: it was not seen to.
    private(set) var shortest: Int64?
    /// The longest time after which one was still open, since it last closed one so soon.
    private var longestOpen: Int64 = 0
    /// How many in a row lasted twice as long as `shortest`.
    private var longerOnes = 0
    /// The shortest time after which one of those was closed.
    private var shortestOfLonger: Int64?

    /// Whether the server closes connections on which it does not read another request, however soon that comes: one did
    /// not last even as long as was trusted.
    private var readsNoMore: Bool { shortest == 0 }

    /// For how long a connection may have been idle that a request takes which cannot be sent twice: half of what was
    /// seen, since the next one may end sooner, and the request is on its way when it does.
    /// - Parameter saysTime: whether the server says itself for how long (`Keep-Alive`), which its pool sees to: then only
    ///   what was seen to be shorter counts.
    func trusted(saysTime: Bool) -> Int64 {
        if let shortest { return shortest / 2 }
        return saysTime ? .max : max(Self.atFirst, longestOpen / 2)
    }

    /// The server closed a connection that had been idle for so long.
    /// - Parameter metRequest: a request was sent on it by then.
    mutating func noteClosed(after idle: Int64, metRequest: Bool = false) {
        if readsNoMore {
            longerOnes = 0
            return
        }
        if metRequest, let shortest, idle < shortest / 2 {
            self.shortest = 0
            (longestOpen, longerOnes, shortestOfLonger) = (0, 0, nil)
            return
        }
        if let shortest, idle > 2 * shortest {
            shortestOfLonger = min(idle, shortestOfLonger ?? idle)
            return noteLonger()
        }
        shortest = min(idle, shortest ?? idle)
        (longestOpen, longerOnes, shortestOfLonger) = (0, 0, nil)
    }

    /// A connection was still open after so long: it answered a request, or was not used.
    mutating func noteOpen(after idle: Int64) {
        guard let shortest else {
            longestOpen = max(longestOpen, idle)
            return
        }
        guard idle > 2 * shortest, !readsNoMore || idle >= Self.atFirst else { return }
        longestOpen = max(longestOpen, idle)
        noteLonger()
    }

    private mutating func noteLonger() {
        longerOnes += 1
        guard longerOnes == Self.enoughToDoubt else { return }
        shortest = shortestOfLonger
        if shortest != nil { longestOpen = 0 }
        (longerOnes, shortestOfLonger) = (0, nil)
    }
}
