import Bytes
import Libevent

/// Sending a body in frames of HTTP/2, whose sizes the client's windows decide.
extension Delivery {
    /// How many bytes can go into the next frame, and the state of the body behind them. `.more` may come with no byte:
    /// then it is like `.starved`.
    func frame(most: Int, _ list: GatherList) -> (count: Int, end: End) {
        while true {
            let (ready, end) = readySize(list, most: most)
            if ready == 0, end == .complete, goOn() { continue }
            let count = min(most, ready)
            guard count > 0 else { return (0, end) }
            return (count, end == .complete && count == ready && !hasLater ? .complete : .more)
        }
    }

    private func readySize(_ list: GatherList, most: Int) -> (Int, End) {
        if case .complete(let reader) = source { return (reader.remaining, .complete) }
        list.removeAll()
        defer { list.removeAll() }
        let end = prepare(list, bytes: most)
        return (list.byteCount, end)
    }

    /// Passes the next `count` bytes, which `frame` has found, to `add`, and accounts for them.
    func takeFrame(_ count: Int, _ list: GatherList, _ add: (ByteSlice) -> Void) {
        if case .complete(let reader) = source {
            reader.forEach(first: count, add)
        } else {
            list.removeAll()
            _ = prepare(list, bytes: count)
            var left = count
            list.forEach { piece in
                guard left > 0 else { return }
                let part = min(left, piece.count)
                add(piece[0..<part])
                left -= part
            }
            list.removeAll()
        }
        account(count)
    }

    /// The trailer section behind the body; `nil` if there is none, or the client has not asked for it.
    var trailers: ByteSlice? { followed.flatMap { trailers(of: $0) } }
}
