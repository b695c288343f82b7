public import Bytes
import CLibevent
import Glibc

/// What one write gave.
public enum WriteResult: Sendable, Equatable {
    /// This many bytes were written, perhaps fewer than offered: then arm for writing and send the rest later.
    case wrote(Int)
    /// The socket is full; arm for writing.
    case wouldBlock
    /// The connection is broken.
    case failed(SystemError)
}

/// How far `flush` came.
public enum FlushResult: Sendable, Equatable {
    /// Nothing is left.
    case done
    /// The rest waits for `writable()`.
    case blocked
    /// The connection is broken.
    case failed(SystemError)
}

/// Writing straight to the kernel: one system call each, nothing kept. On the loop's thread, while the socket is open.
/// A peer that has left is a result like any other: no signal is raised.
extension Socket {
    /// Writes what the kernel takes now. On the socket's loop; never waits.
    public final func write(_ bytes: Span<UInt8>) -> WriteResult {
        unsafe bytes.withUnsafeBytes { bytes in
            let count = retryingInterrupted {
                unsafe coalesced_send(descriptor, bytes.baseAddress, bytes.count)
            }
            return outcome(count)
        }
    }

    /// Writes all of `buffer`, as far as the kernel takes it now, and takes out what is written. Arms for writing if
    /// something is left, and disarms if not.
    /// - Parameter wrote: told after each write how many bytes it took.
    public final func flush(_ buffer: ByteBuffer, wrote: (Int) -> Void = { _ in }) -> FlushResult {
        while !buffer.isEmpty {
            switch write(buffer.span) {
            case .wrote(let count):
                buffer.consume(count)
                wrote(count)
            case .wouldBlock:
                armWrite()
                return .blocked
            case .failed(let error):
                return .failed(error)
            }
        }
        disarmWrite()
        return .done
    }

    /// Writes `first`, then `second`: a head and a body that is whole.
    public final func write(_ first: Span<UInt8>, _ second: Span<UInt8>) -> WriteResult {
        unsafe first.withUnsafeBytes { first in
            unsafe second.withUnsafeBytes { second in
                // The kernel only reads.
                var vectors = unsafe (
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count),
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
                )
                return unsafe withUnsafeMutableBytes(of: &vectors) { memory in
                    // A tuple of two of them lies in memory as an array of two.
                    unsafe send(memory.baseAddress!.assumingMemoryBound(to: iovec.self), 2)
                }
            }
        }
    }

    /// Writes the pieces of `list`. The list stays as it is.
    public final func write(_ list: GatherList) -> WriteResult {
        unsafe list.withVectors(after: UnsafeRawBufferPointer(start: nil, count: 0)) { unsafe send($0, $1) }
    }

    /// Writes `head`, then the pieces of `list`. The list stays as it is.
    public final func write(_ head: Span<UInt8>, _ list: GatherList) -> WriteResult {
        unsafe head.withUnsafeBytes { head in
            unsafe list.withVectors(after: head) { unsafe send($0, $1) }
        }
    }

    private func send(_ vectors: UnsafeMutablePointer<iovec>, _ count: Int) -> WriteResult {
        if count == 1 {
            // The kernel has less to copy and to check.
            return outcome(
                retryingInterrupted { unsafe coalesced_send(descriptor, vectors[0].iov_base, vectors[0].iov_len) })
        }
        var message = unsafe msghdr()
        unsafe message.msg_iov = vectors
        unsafe message.msg_iovlen = count
        return outcome(retryingInterrupted { unsafe coalesced_send_message(descriptor, &message) })
    }

    private func outcome(_ count: Int) -> WriteResult {
        if count >= 0 { return .wrote(count) }
        let code = errno
        return code == EAGAIN || code == EWOULDBLOCK ? .wouldBlock : .failed(SystemError(.send, code: code))
    }
}

// MARK: What the kernel holds

extension Socket {
    /// Bytes the kernel may hold of what was written, on the loopback; it counts its own overhead and doubles the
    /// number, so that three to four segments of 64 KiB fit. With less than two it would wait for acknowledgements that
    /// a peer delays.
    private static let sendQueueOnLoopback: Int32 = 128 << 10
    /// A segment of this size is on loopback: Ethernet's have at most 9,000 bytes. It is half the peer's receive
    /// buffer, if that is less than what fits.
    private static let loopbackSegment: Int32 = 16 << 10
    /// Bytes that wait to be sent for the first time, elsewhere; it takes more when half of them are on their way. A peer
    /// that reads 64 KiB a second is seen to take something every two seconds.
    static let mostUnsent: Int32 = 256 << 10

    /// Before a large write: keeps the kernel from taking all of it at once where that gains nothing.
    ///
    /// The kernel queues twice as many segments as may be in flight, beginning with ten. On loopback a segment is 64
    /// KiB, so that megabytes are copied into a queue faster than the peer reads: they have left the processor's caches
    /// by the time it does, and each slow peer costs that much memory. On networks as much may be in flight as the path
    /// needs, but little more may wait: megabytes that were taken from a peer's fast days would hide for a minute what a
    /// slow one reads. On the loop's thread; costs system calls the first time only.
    @inline(__always)
    public final func boundSendQueue() {
        if !sendQueueIsBounded { boundSendQueueNow() }
    }

    @inline(never)
    private func boundSendQueueNow() {
        sendQueueIsBounded = true
        var segment: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        // Unix sockets have no segments, and small queues.
        guard unsafe getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_MAXSEG, &segment, &length) == 0 else { return }
        // A peer with a small buffer has small segments, wherever it is.
        // If it fails, only speed is lost.
        if segment >= Self.loopbackSegment || (try? peerAddress().staysInMachine) == true {
            try? setSocketOption(descriptor, SOL_SOCKET, SO_SNDBUF, Self.sendQueueOnLoopback)
        } else {
            try? setSocketOption(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Self.mostUnsent)
        }
    }
}
