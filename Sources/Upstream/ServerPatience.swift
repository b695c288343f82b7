/// How long a server keeps an idle connection open, as far as one loop has seen. A request that cannot be sent twice
/// takes no idle connection that the server may be closing.
///
/// ```
/// unknown ─closed→ known (shortest)           ─closed sooner→ known (shorter)
/// known ─closed under a request, though trusted→ nothing is trusted (0) ─enough in a row that lasted→ unknown
/// known ─enough in a row lasted twice as long→ known (the shortest of them that was closed), or unknown
/// ```
///
/// The last line is for a server that was restarted, which closes its connections at any age, and for a server whose
/// settings changed. A value without I/O; times are in nanoseconds. Each loop has one for each place.
struct ServerPatience {
    /// How long a connection may have been idle, for a server of which no close was seen: servers that close idle
    /// connections by the clock do so after 2 s (gunicorn) or more.
    static let atFirst: Int64 = 1_000_000_000
    /// How many connections in a row must have lasted more than twice as long as `shortest` before it is doubted: a
    /// server that looks at its clock only now and then also closes connections at different ages.
    static let enoughToDoubt = 16

    /// The shortest idle time after which the server has closed a connection; `nil` if no such close was seen.
    private(set) var shortest: Int64?
    /// The longest idle time after which a connection was still open, since `shortest` was last set.
    private var longestOpen: Int64 = 0
    /// How many connections in a row lasted more than twice as long as `shortest`.
    private var longerOnes = 0
    /// The shortest idle time after which one of these connections was closed.
    private var shortestOfLonger: Int64?

    /// Whether the server closes connections without reading another request from them: one that was trusted was closed
    /// under its request.
    private var readsNoMore: Bool { shortest == 0 }

    /// For how long a connection may have been idle if a request that cannot be sent twice is to use it. Half of the
    /// observed time, since the server may close the next connection sooner, while the request is on its way.
    /// - Parameter statesTimeout: whether the server states the time itself (`Keep-Alive`), which its pool enforces:
    ///   then only closes that were seen to be earlier count.
    func trusted(statesTimeout: Bool) -> Int64 {
        if let shortest { return shortest / 2 }
        return statesTimeout ? .max : max(Self.atFirst, longestOpen / 2)
    }

    /// Notes that the server closed a connection that had been idle for so long.
    /// - Parameter metRequest: whether a request had been sent on the connection by then.
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

    /// Notes that a connection was still open after being idle for so long: it answered a request, or was not used.
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
