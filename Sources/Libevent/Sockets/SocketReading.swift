public import Bytes
import CLibevent
import Glibc

/// The result of one read.
public enum ReadResult: Sendable, Equatable {
    /// This many bytes were read, at least one.
    case bytes(Int)
    /// No bytes yet; `readable` reports the next ones.
    case wouldBlock
    /// The peer has closed its side of the stream after its last byte.
    case endOfStream
    /// The connection is broken: the bytes received before may be incomplete.
    case failed(SystemError)
}

/// The result of `Socket.firstByte`.
public enum FirstByte: Sendable, Equatable {
    case byte(UInt8)
    /// None has arrived yet.
    case nothing
    /// The stream has ended, or is broken.
    case ended
}

/// Reads straight from the kernel, with one system call per method. On the loop's thread, while the socket is open.
extension Socket {
    /// Appends as many bytes to `buffer` as fit; makes room for at least `minimum` bytes.
    public final func read(into buffer: ByteBuffer, minimum: Int = 4096) -> ReadResult {
        var result = ReadResult.wouldBlock
        _ = unsafe buffer.withFreeSpace(minimum: minimum) { free in
            unsafe result = receive(free)
            if case .bytes(let count) = result { return count }
            return 0
        }
        return result
    }

    /// Whether no bytes, no end and no error wait to be read. Asks the kernel and consumes nothing.
    public final var isSilent: Bool {
        if let layer = unsafe layer { return layer.isSilent }
        var byte: UInt8 = 0
        let count = retryingInterrupted { unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) }
        return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
    }

    /// The first of the bytes that wait to be read. Asks the kernel, and leaves it there.
    public final var firstByte: FirstByte {
        var byte: UInt8 = 0
        let count = retryingInterrupted { unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) }
        if count > 0 { return .byte(byte) }
        return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? .nothing : .ended
    }

    private func receive(_ memory: UnsafeMutableRawBufferPointer) -> ReadResult {
        precondition(memory.count > 0, "a read without room would look like the end of the stream")
        if let layer = unsafe layer {
            let result = unsafe layer.receive(memory)
            noteBytes(heldBy: layer)
            return result
        }
        // The kernel writes at most `memory.count` bytes.
        guard let start = memory.baseAddress else { return .wouldBlock }
        let count = retryingInterrupted { unsafe coalesced_receive(descriptor, start, memory.count) }
        if count > 0 { return .bytes(count) }
        if count == 0 { return .endOfStream }
        let code = errno
        return code == EAGAIN || code == EWOULDBLOCK ? .wouldBlock : .failed(SystemError(.receive, code: code))
    }
}
