import Bytes
import HTTPSemantics
import Libevent

/// A body of unknown length on its way to a client of HTTP/1.1.
extension Delivery {
    /// Which chunk is on its way (RFC 9112 §7.1). Its size stands in `control`; its data, its end and what follows it are
    /// in the list of each write, so that a chunk goes out whole: a client may wait for the end of the chunk before it
    /// takes the data.
    ///
    /// ```
    /// between ─bytes→ open ─its data and its end are out→ between
    ///    └─the body's end→ last;   open ─its end, and a part of the last chunk, are out→ last
    /// ```
    enum Chunks {
        /// Every chunk that was begun is out.
        case between
        /// `left` bytes of the chunk are not out yet, with the CRLF that ends it.
        case open(left: Int)
        /// The last chunk, which is empty, with the trailer section: this much of it is not out yet.
        case last(left: ByteSlice)

        /// What ends a chunk.
        private static let end = ByteSlice("\r\n")
        /// What ends a body without trailers.
        private static let plainLast = ByteSlice("0\r\n\r\n")

        /// Bytes of content that are announced and not out yet.
        var contentLeft: Int {
            switch self {
            case .open(let left): max(0, left - Self.end.count)
            case .between, .last: 0
            }
        }

        /// Writes the size of the next chunk.
        mutating func begin(_ length: Int, in control: ByteBuffer) {
            control.appendChunkHeader(length)
            self = .open(left: length + Self.end.count)
        }

        /// Adds what is left of the chunk's end, behind its data.
        func addEnd(to list: GatherList) {
            guard case .open(let left) = self else { return }
            list.append(Self.end[max(0, Self.end.count - left)..<Self.end.count])
        }

        /// Adds what is left of the last chunk. Its bytes are the same each time it is offered.
        mutating func addLast(trailers: ByteSlice?, to list: GatherList) {
            switch self {
            case .between: self = .last(left: Self.last(trailers))
            // Goes out behind the chunk that is open (`account`).
            case .open: return list.append(Self.last(trailers))
            case .last: break
            }
            if case .last(let left) = self { list.append(left) }
        }

        private static func last(_ trailers: ByteSlice?) -> ByteSlice {
            guard let trailers else { return plainLast }
            let bytes = ByteBuffer(capacity: trailers.count + plainLast.count)
            bytes.appendLastChunk(trailers: trailers)
            return bytes.copied()
        }

        /// `count` bytes behind `control` are out.
        /// - Parameter trailers: of the body, if it is at its end and they are passed on.
        /// - Returns: how many of them are content.
        mutating func account(_ count: Int, trailers: @autoclosure () -> ByteSlice?) -> Int {
            switch self {
            case .between:
                return 0
            case .open(let left):
                let content = min(count, contentLeft)
                if count < left {
                    self = .open(left: left - count)
                } else if count == left {
                    self = .between
                } else {
                    let last = Self.last(trailers())
                    self = .last(left: last[count - left..<last.count])
                }
                return content
            case .last(let left):
                self = .last(left: left[count..<left.count])
                return 0
            }
        }
    }
}
