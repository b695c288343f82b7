import Bytes
import HTTPSemantics

/// A body of unknown length on its way to a client of HTTP/1.1.
extension Delivery {
    /// Which chunks have their sizes in `control` or behind it (RFC 9112 §7.1).
    ///
    /// ```
    /// none ─bytes→ open ─its bytes are out, and there are more→ open ─its bytes are out, and the body's end→ last;   none ─end→ last
    /// ```
    enum Chunks {
        case none
        /// `left` bytes of the latest chunk are not out yet.
        case open(left: Int)
        /// The last chunk, which is empty.
        case last

        /// The bytes of the latest chunk that are not out yet.
        var left: Int {
            switch self {
            case .none, .last: 0
            case .open(let left): left
            }
        }

        /// Writes the size of the next chunk.
        mutating func begin(_ length: Int, in control: ByteBuffer) {
            end(in: control)
            control.appendChunkHeader(length)
            self = .open(left: length)
        }

        /// Writes the last chunk, once.
        mutating func finish(trailers: ByteSlice?, in control: ByteBuffer) {
            if case .last = self { return }
            end(in: control)
            control.appendLastChunk(trailers: trailers)
            self = .last
        }

        private func end(in control: ByteBuffer) {
            if case .open = self { control.appendChunkEnd() }
        }

        mutating func account(_ count: Int) {
            if case .open(let left) = self { self = .open(left: left - count) }
        }
    }
}
