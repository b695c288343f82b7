import Bytes
import Libevent
import Storage

/// How far one client has come in a body that is complete: a part of it, piece by piece.
struct CompleteBodyReader {
    private let pieces: ShortList<ByteSlice>
    /// The bodies that the pieces belong to, which are to stay in the store, and in the budget, while they are read.
    /// None where nothing is accounted for, or all goes out at once.
    private(set) var bodies: ShortList<GrowingBody>
    private var index = 0
    /// Bytes of `pieces[index]` already passed.
    private var passed = 0
    /// Bytes of the part still to go.
    private(set) var remaining: Int

    /// - Parameter part: counted from the start of the body; within it.
    init(
        _ pieces: ShortList<ByteSlice>, part: Range<Int>, of bodies: ShortList<GrowingBody> = ShortList()
    ) {
        self.pieces = pieces
        self.bodies = bodies
        remaining = part.count
        skip(part.lowerBound)
    }

    /// All of a response's body, which is packed.
    init(packed response: StoredResponse) {
        self.init(response.pieces ?? ShortList(), part: 0..<(response.bodyLength ?? 0))
    }

    /// This reader, holding on to the bodies of `response`: for one that is not all out at once.
    func reading(_ response: StoredResponse) -> Self {
        var reader = self
        reader.bodies = response.bodies
        return reader
    }

    /// Adds what comes next to `list`, as far as that has room.
    func gather(into list: GatherList) {
        forEachSlice { piece, part in
            guard !list.isFull else { return false }
            list.append(piece[part])
            return true
        }
    }

    /// Appends a copy of all that is still to go to `buffer`.
    func copy(to buffer: ByteBuffer) {
        forEachSlice { piece, part in
            buffer.append(piece.span.extracting(part))
            return true
        }
    }

    /// All that is still to go, as pieces.
    var allPieces: [ByteSlice] {
        var found: [ByteSlice] = []
        forEachSlice { piece, part in
            found.append(piece[part])
            return true
        }
        return found
    }

    /// Visits the part of each piece that is still to go, for as long as `visit` wants more.
    @inline(__always)
    private func forEachSlice(_ visit: (ByteSlice, Range<Int>) -> Bool) {
        var left = remaining
        var index = index
        var from = passed
        while left > 0, index < pieces.count {
            let piece = pieces[index]
            let part = min(left, piece.count - from)
            guard visit(piece, from..<from + part) else { return }
            left -= part
            index += 1
            from = 0
        }
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
