import Bytes
import Libevent
import Storage

/// How far one client has come in a body that is complete: a part of it, piece by piece.
struct CompleteBodyReader {
    private let pieces: ShortList<ByteSlice>
    private var index = 0
    /// Bytes of `pieces[index]` already passed.
    private var passed = 0
    /// Bytes of the part still to go.
    private(set) var remaining: Int

    /// - Parameter part: counted from the start of the body; within it.
    init(_ pieces: ShortList<ByteSlice>, part: Range<Int>) {
        self.pieces = pieces
        remaining = part.count
        skip(part.lowerBound)
    }

    /// All of a response's body, which is packed.
    init(packed response: StoredResponse) {
        self.init(response.pieces ?? ShortList(), part: 0..<(response.bodyLength ?? 0))
    }

    /// Adds what comes next to `list`, as far as that has room.
    func gather(into list: GatherList) {
        var left = remaining
        var index = index
        var from = passed
        while left > 0, index < pieces.count, !list.isFull {
            let piece = pieces[index]
            let part = min(left, piece.count - from)
            list.append(piece[from..<from + part])
            left -= part
            index += 1
            from = 0
        }
    }

    /// Appends a copy of all that is still to go to `buffer`.
    func copy(to buffer: ByteBuffer) {
        var left = remaining
        var index = index
        var from = passed
        while left > 0, index < pieces.count {
            let piece = pieces[index]
            let part = min(left, piece.count - from)
            buffer.append(piece.span.extracting(from..<from + part))
            left -= part
            index += 1
            from = 0
        }
    }

    /// All that is still to go, as pieces.
    var allPieces: [ByteSlice] {
        var found: [ByteSlice] = []
        var left = remaining
        var from = passed
        for piece in pieces[index...] where left > 0 {
            let part = min(left, piece.count - from)
            found.append(piece[from..<from + part])
            left -= part
            from = 0
        }
        return found
    }

    mutating func advance(by count: Int) {
        remaining -= count
        skip(count)
    }

    private mutating func skip(_ count: Int) {
        passed += count
        while index < pieces.count, passed >= pieces[index].count {
            passed -= pieces[index].count
            index += 1
        }
    }
}
