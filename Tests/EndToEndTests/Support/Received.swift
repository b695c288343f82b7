/// A request as the origin got it; its body may still grow.
struct Received: Sendable {
    let head: Head
    let method: String
    let path: String
    let at: Instant
    /// The how manieth request for this path it is, from 1.
    let number: Int
    /// Which connection, and the how manieth request on it (both from 0).
    let connection: Int
    let ordinal: Int
    var body = Body()
    var isWhole = false
    /// A chunk has begun whose end has not come.
    var isInChunk = false
    /// The other side closed the connection before the script was at its end.
    var wasAbandoned = false
    /// Bytes of the answer that the kernel has taken so far.
    var sent = 0

    var target: String { head.target }
    subscript(name: String) -> String? { head[name] }
}

/// All requests of an origin in the order in which they came, and by path.
struct Ledger: Sendable {
    private var all: [Received] = []
    private var byPath: [String: [Int]] = [:]

    var count: Int { all.count }
    var last: Int { all.count - 1 }

    subscript(index: Int) -> Received {
        get { all[index] }
        set { all[index] = newValue }
        _modify { yield &all[index] }
    }

    subscript(path: String) -> [Received] { (byPath[path] ?? []).map { all[$0] } }

    mutating func append(_ head: Head, connection: Int, ordinal: Int) {
        let path = head.path
        byPath[path, default: []].append(all.count)
        all.append(
            Received(
                head: head, method: head.method, path: path, at: .now, number: byPath[path]!.count,
                connection: connection,
                ordinal: ordinal
            ))
    }
}
