public import Bytes

/// Writes messages (RFC 9112 §3 to §7). The arguments must be valid already: no method escapes or checks them.
extension ByteBuffer {
    /// `HTTP/1.1 200 OK` with the registered phrase. The version is always this proxy's, not a received one (RFC 9112
    /// §2.3).
    public func appendStatusLine(_ status: Status) {
        // The usual case.
        if status == .ok { return append("HTTP/1.1 200 OK\r\n") }
        appendStatusCode(status)
        append(status.reasonPhrase)
        appendLineEnd()
    }

    /// Appends the status line with a received phrase.
    public func appendStatusLine(_ status: Status, reason: Span<UInt8>) {
        appendStatusCode(status)
        append(reason)
        appendLineEnd()
    }

    private func appendStatusCode(_ status: Status) {
        append("HTTP/1.1 ")
        append(decimal: UInt64(status.code))
        append(UInt8(ascii: " "))
    }

    /// CRLF: ends a line, or the head.
    @inlinable @inline(__always)
    public func appendLineEnd() { append("\r\n") }

    /// A whole field line.
    @inlinable
    public func appendField(_ name: StaticString, _ value: StaticString) {
        appendName(name)
        append(value)
        appendLineEnd()
    }

    /// A whole field line with a value that was received or computed.
    @inlinable
    public func appendField(_ name: StaticString, _ value: Span<UInt8>) {
        appendName(name)
        append(value)
        appendLineEnd()
    }

    /// A whole field line with a decimal number.
    @inlinable @inline(__always)
    public func appendField(_ name: StaticString, _ value: UInt64) {
        appendName(name)
        append(decimal: value)
        appendLineEnd()
    }

    /// `name: `, for a value that is written piece by piece; end it with `appendLineEnd`.
    @inlinable @inline(__always)
    public func appendName(_ name: StaticString) {
        append(name)
        append(": ")
    }

    /// The field line that announces `framing`; none if no field announces it (RFC 9112 §6).
    public func appendFraming(_ framing: MessageFraming) {
        switch framing {
        case .none, .untilClose: break
        case .length(let count): appendField("Content-Length", count)
        case .chunked: append("Transfer-Encoding: chunked\r\n")
        }
    }

    /// Appends the size line before a chunk's data; `count` is not 0, since a chunk of size 0 ends the body (RFC 9112
    /// §7.1).
    @inlinable
    public func appendChunkHeader(_ count: Int) {
        precondition(count > 0, "an empty chunk would end the body")
        append(hexadecimal: UInt64(count))
        appendLineEnd()
    }

    /// Appends the CRLF after a chunk's data.
    @inlinable
    public func appendChunkEnd() { appendLineEnd() }

    /// Appends the last chunk and the trailer section, which end the body.
    /// - Parameter trailers: field lines without the last CRLF.
    @inlinable
    public func appendLastChunk(trailers: ByteSlice? = nil) {
        append("0\r\n")
        if let trailers { append(trailers) }
        appendLineEnd()
    }
}
