public import Bytes
import CLibevent
import Glibc

/// What one read gave.
public enum ReadResult: Sendable, Equatable {
    /// This many bytes, at least one.
    case bytes(Int)
    /// Nothing yet; `readable` reports when.
    case wouldBlock
    /// The peer has sent everything and said so.
    case endOfStream
    /// The connection is broken: whatever came before may be cut off.
    case failed(SystemError)
}

/// Reading straight from the kernel: one system call each. On the loop's thread, while the socket is open.
extension Socket {
    /// Reads after what `buffer` holds, as much as fits; makes room for at least `minimum` bytes.
    public final func read(into buffer: ByteBuffer, minimum: Int = 4096) -> ReadResult {
        var result = ReadResult.wouldBlock
        _ = unsafe buffer.withFreeSpace(minimum: minimum) { free in
            unsafe result = receive(free)
            if case .bytes(let count) = result { return count }
            return 0
        }
        return result
    }

    /// Whether nothing waits to be read, not even the end or an error. Asks the kernel, and leaves there what there is.
    public final var isSilent: Bool {
        var byte: UInt8 = 0
        let count = retryingInterrupted { unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) }
        return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
    }

    private func receive(_ memory: UnsafeMutableRawBufferPointer) -> ReadResult {
        precondition(memory.count > 0, "a read without room would look like the end of the stream")
        // The kernel writes at most as many bytes as there are.
        guard let start = memory.baseAddress else { return .wouldBlock }
        let count = retryingInterrupted { unsafe coalesced_receive(descriptor, start, memory.count) }
        if count > 0 { return .bytes(count) }
        if count == 0 { return .endOfStream }
        let code = errno
        return code == EAGAIN || code == EWOULDBLOCK ? .wouldBlock : .failed(SystemError(.receive, code: code))
    }
}
