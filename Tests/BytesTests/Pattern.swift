import Bytes
import Synchronization

/// The byte that stands at `offset` of every test body, so that a reader can tell a wrong byte from a right one.
func patternByte(_ offset: Int) -> UInt8 { UInt8(truncatingIfNeeded: offset &* 31 ^ offset >> 8 ^ offset >> 16) }

func pattern(_ range: Range<Int>) -> [UInt8] { range.map(patternByte) }

func bytes(_ slices: some Sequence<ByteSlice>) -> [UInt8] {
    var all: [UInt8] = []
    for slice in slices {
        let span = slice.span
        for index in 0..<span.count { all.append(span[index]) }
    }
    return all
}

func bytes(_ span: Span<UInt8>) -> [UInt8] {
    var all: [UInt8] = []
    for index in 0..<span.count { all.append(span[index]) }
    return all
}

extension GrowingBody {
    func append(_ bytes: [UInt8]) -> AppendResult { append(bytes.span) }

    /// All there is at the cursor, and how the body stands behind it.
    func take(_ cursor: inout Cursor, slicesAtOnce: Int = 16) -> (bytes: [UInt8], phase: Phase, reachesEnd: Bool) {
        var slices: [ByteSlice] = []
        let (phase, reachesEnd) = read(at: cursor, into: &slices, limit: slicesAtOnce)
        let taken = contents(slices)
        advance(&cursor, by: taken.count)
        return (taken, phase, reachesEnd)
    }
}

private func contents(_ slices: [ByteSlice]) -> [UInt8] { bytes(slices) }

final class Count: Sendable {
    private let number = Atomic<Int>(0)
    var value: Int { number.load(ordering: .sequentiallyConsistent) }
    func up() { number.add(1, ordering: .sequentiallyConsistent) }
}
