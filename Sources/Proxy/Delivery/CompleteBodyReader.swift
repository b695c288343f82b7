import Bytes
import Libevent
import Storage

/// One client's position in a complete body, of which it gets a range, piece by piece.
struct CompleteBodyReader {
    private let pieces: ShortList<ByteSlice>
    /// The bodies that own the pieces. They must stay in the store, and in the budget, while they are read. Empty if no
    /// memory is accounted for the pieces, or if the whole range is sent at once.
    private(set) var bodies: ShortList<GrowingBody>
    private var index = 0
    /// Bytes of `pieces[index]` already passed.
    private var passed = 0
    /// Bytes of the range still to be sent.
    private(set) var remaining: Int

    /// - Parameter part: the range to send, in bytes from the start of the body and within it.
    init(
        _ pieces: ShortList<ByteSlice>, part: Range<Int>, of bodies: ShortList<GrowingBody> = ShortList()
    ) {
        self.pieces = pieces
        self.bodies = bodies
        remaining = part.count
        skip(part.lowerBound)
    }

    /// This reader with a hold on the bodies of `response`, needed if not everything is sent at once.
    func reading(_ response: StoredResponse) -> Self {
        var reader = self
        reader.bodies = response.bodies
        return reader
    }

    /// Adds the next slices to `list`, as far as it has room.
    func gather(into list: GatherList) {
        forEachSlice { piece, part in
            guard !list.isFull else { return false }
            list.append(piece[part])
            return true
        }
    }

    /// Adds all remaining bytes to `list`, which is empty.
    /// - Returns: false, with an empty list, if they do not fit.
    func gatherAll(into list: GatherList) -> Bool {
        gather(into: list)
        guard list.byteCount == remaining else {
            list.removeAll()
            return false
        }
        return true
    }

    /// Calls `body` with the next `count` bytes, slice by slice.
    func forEach(first count: Int, _ body: (ByteSlice) -> Void) {
        var left = count
        forEachSlice { piece, part in
            let end = min(part.upperBound, part.lowerBound + left)
            body(piece[part.lowerBound..<end])
            left -= end - part.lowerBound
            return left > 0
        }
    }

    /// All remaining bytes, as slices.
    var allPieces: [ByteSlice] {
        var found: [ByteSlice] = []
        forEachSlice { piece, part in
            found.append(piece[part])
            return true
        }
        return found
    }

    /// Visits the remaining slice of each piece until `visit` returns false.
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
