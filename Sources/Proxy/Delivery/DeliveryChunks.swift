import Bytes
import HTTPSemantics
import Libevent

/// Sending a body of unknown length to a client of HTTP/1.1.
extension Delivery {
    /// The chunk being sent (RFC 9112 §7.1). Its size line is in `control`. Its data, its CRLF and the last chunk
    /// behind it are in the list of each write, so that a chunk is sent whole: a client may wait for the end of a chunk
    /// before it uses the data.
    ///
    /// ```
    /// between ─bytes→ open ─its data and its CRLF are sent→ between
    ///    └─the body's end→ last;   open ─its CRLF and a part of the last chunk are sent→ last
    /// ```
    enum Chunks {
        /// Every chunk whose size was written is sent.
        case between
        /// `left` bytes of the chunk, its final CRLF included, are not sent yet.
        case open(left: Int)
        /// `left` is the unsent part of the last chunk, which has size 0, and of the trailer section.
        case last(left: ByteSlice)

        /// The end of a chunk.
        private static let end = ByteSlice("\r\n")
        /// The end of a body without trailers.
        private static let plainLast = ByteSlice("0\r\n\r\n")

        /// Bytes of content within the size of the open chunk that are not sent yet.
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

        /// Adds the unsent part of the chunk's CRLF behind its data.
        func addEnd(to list: GatherList) {
            guard case .open(let left) = self else { return }
            list.append(Self.end[max(0, Self.end.count - left)..<Self.end.count])
        }

        /// Adds the unsent part of the last chunk. Its bytes are the same each time it is added.
        mutating func addLast(trailers: ByteSlice?, to list: GatherList) {
            switch self {
            case .between: self = .last(left: Self.last(trailers))
            // The last chunk is sent behind the open chunk; `account` notes it.
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

        /// Accounts for `count` sent bytes behind `control`.
        /// - Parameter trailers: the body's trailer section, if the body is complete and trailers are passed on.
        /// - Returns: how many of these bytes are content.
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
