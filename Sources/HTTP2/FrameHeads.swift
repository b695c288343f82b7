/// Finds the heads of frames (RFC 9113 §4.1) in the bytes of a client, which come in any pieces: nghttp2 says nothing of
/// frames that it drops. A pure value.
struct FrameHeads: Sendable {
    struct Head: Equatable, Sendable {
        var length: Int
        var type: UInt8
        var flags: UInt8
        var stream: Int32
    }

    /// The bytes of a head.
    static let size = 9

    /// Bytes until the next head: the preface of the client (§3.4) at first, then a payload.
    private var left = 24
    private var bytes: [9 of UInt8] = [9 of UInt8](repeating: 0)
    private var count = 0

    /// Finds the next head in `bytes` from `index` on, and moves `index` behind it.
    /// - Returns: `nil`, with `index` at the end, if there is none.
    mutating func next(in bytes: Span<UInt8>, from index: inout Int) -> Head? {
        let skipped = min(left, bytes.count - index)
        left -= skipped
        index += skipped
        while index < bytes.count {
            self.bytes[count] = bytes[index]
            count += 1
            index += 1
            guard count == Self.size else { continue }
            count = 0
            let head = Head(
                length: Int(self.bytes[0]) << 16 | Int(self.bytes[1]) << 8 | Int(self.bytes[2]), type: self.bytes[3],
                flags: self.bytes[4],
                stream: Int32(self.bytes[5] & 0x7F) << 24 | Int32(self.bytes[6]) << 16 | Int32(self.bytes[7]) << 8
                    | Int32(self.bytes[8]))
            left = head.length
            return head
        }
        return nil
    }
}

extension FrameHeads.Head {
    /// Whether the meaning of the frame depends on the state of an open stream.
    func concernsOpenStream(after last: Int32) -> Bool { type == 0 || type == 1 && stream <= last }
}
