public import Bytes

/// The frames of one connection that the kernel has not taken yet: small bytes in one buffer, and pieces of bodies, which
/// stay where they are. Confined to its loop.
///
/// The session makes more frames only while this is empty, so it holds no more than one round of them.
public final class FrameOutput {
    /// Up to this size, in bytes, a piece is copied: another vector costs the kernel more.
    private static let copied = 2048

    /// The last bytes.
    public let last = ByteBuffer(capacity: 4096)
    // Not public: the compiler then knows all accesses, and checks none of them.
    private var large: [ByteSlice] = []
    private var total = 0

    public init() {}

    /// The first bytes, in their order; the bytes of `last` follow.
    public var pieces: [ByteSlice] { large }
    /// All bytes.
    public var count: Int { total }
    public var isEmpty: Bool { total == 0 }

    /// Adds a copy of `source`.
    public func append(_ source: Span<UInt8>) {
        last.append(source)
        total += source.count
    }

    /// Adds a piece of a body, which is kept alive.
    public func append(_ piece: ByteSlice) {
        guard piece.count > Self.copied else { return append(piece.span) }
        if !last.isEmpty {
            large.append(last.copied())
            last.removeAll()
        }
        large.append(piece)
        total += piece.count
    }

    /// Removes the first `sent` bytes, which the kernel has taken.
    public func consume(_ sent: Int) {
        precondition(sent <= total, "more than there is")
        total -= sent
        var (left, gone) = (sent, 0)
        while gone < large.count, left > 0 {
            let piece = large[gone]
            guard left >= piece.count else {
                large[gone] = piece[left..<piece.count]
                left = 0
                break
            }
            left -= piece.count
            gone += 1
        }
        large.removeFirst(gone)
        if left > 0 { last.consume(left) }
        if last.isEmpty { last.removeAll() }
    }
}
