public import Bytes
import CLibevent
import Glibc

/// The result of one write.
public enum WriteResult: Sendable, Equatable {
    /// This many bytes were written. If fewer than offered, arm for writing and send the rest later.
    case wrote(Int)
    /// The socket is full; arm for writing.
    case wouldBlock
    /// The connection is broken.
    case failed(SystemError)
}

/// The result of `flush`.
public enum FlushResult: Sendable, Equatable {
    /// The buffer is empty.
    case done
    /// The rest waits for `writable()`.
    case blocked
    /// The connection is broken.
    case failed(SystemError)
}

/// Writes straight to the kernel, with one system call per method and no buffering. On the loop's thread, while the
/// socket is open. A peer that has left is an ordinary result: no signal is raised.
extension Socket {
    /// Writes as many bytes as the kernel takes now. On the socket's loop; never waits.
    public final func write(_ bytes: Span<UInt8>) -> WriteResult {
        unsafe bytes.withUnsafeBytes { bytes in
            if let layer = unsafe layer { return unsafe layer.send(bytes) }
            let count = retryingInterrupted {
                unsafe coalesced_send(descriptor, bytes.baseAddress, bytes.count)
            }
            return outcome(count)
        }
    }

    /// Writes as much of `buffer` as the kernel takes now, and consumes the written bytes. Arms for writing if bytes
    /// are left, and disarms otherwise.
    /// - Parameter wrote: called after each write with the number of bytes written.
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

    /// Writes `first`, then `second`: a head and a complete body.
    public final func write(_ first: Span<UInt8>, _ second: Span<UInt8>) -> WriteResult {
        unsafe first.withUnsafeBytes { first in
            unsafe second.withUnsafeBytes { second in
                // The kernel only reads the bytes.
                var vectors = unsafe (
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: first.baseAddress), iov_len: first.count),
                    iovec(iov_base: UnsafeMutableRawPointer(mutating: second.baseAddress), iov_len: second.count)
                )
                return unsafe withUnsafeMutableBytes(of: &vectors) { memory in
                    // A tuple of two vectors lies in memory as an array of two.
                    unsafe send(memory.baseAddress!.assumingMemoryBound(to: iovec.self), 2)
                }
            }
        }
    }

    /// Writes the pieces of `list`, which is unchanged.
    public final func write(_ list: GatherList) -> WriteResult {
        unsafe list.withVectors(after: UnsafeRawBufferPointer(start: nil, count: 0)) { unsafe send($0, $1) }
    }

    /// Writes `head`, then the pieces of `list`, which is unchanged.
    public final func write(_ head: Span<UInt8>, _ list: GatherList) -> WriteResult {
        unsafe head.withUnsafeBytes { head in
            unsafe list.withVectors(after: head) { unsafe send($0, $1) }
        }
    }

    private func send(_ vectors: UnsafeMutablePointer<iovec>, _ count: Int) -> WriteResult {
        if let layer = unsafe layer {
            return unsafe layer.send(UnsafeBufferPointer(start: vectors, count: count), through: loop.scratch)
        }
        if count == 1 {
            // `send` has less to copy and to check than `sendmsg`.
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

// MARK: The kernel's send queue

extension Socket {
    /// The limit of the kernel's send queue on loopback, in bytes. The kernel doubles the number and counts its own
    /// overhead, so that three to four segments of 64 KiB fit. With fewer than two segments, the kernel would wait for
    /// acknowledgements that a peer delays.
    private static let sendQueueOnLoopback: Int32 = 128 << 10
    /// A connection with segments of this size or more is on loopback: Ethernet segments have at most 9,000 bytes. A
    /// segment is half the peer's receive buffer, if that is less than the interface allows.
    private static let loopbackSegment: Int32 = 16 << 10
    /// The most bytes that wait to be sent for the first time, on networks. The kernel takes more when half of them are
    /// on their way. So a peer that reads 64 KiB a second is seen to make progress every two seconds.
    static let mostUnsent: Int32 = 256 << 10

    /// Keeps the kernel from taking all bytes of a large write at once, if that has no advantage. Call this before such
    /// a write.
    ///
    /// The kernel queues twice as many segments as may be in flight, beginning with ten. On loopback a segment is 64
    /// KiB, so megabytes are copied into the queue faster than the peer reads. By the time the peer reads them, they
    /// have left the processor's caches, and each slow peer costs that much memory. On networks as much may be in
    /// flight as the path needs, but little more may wait: if the kernel took megabytes while a peer was fast, they
    /// would hide for a minute how little the peer reads once it is slow. On the loop's thread; makes system calls the
    /// first time only.
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
        // A peer with a small buffer has small segments even on loopback, so its address is checked too. If setting the
        // option fails, only speed is lost.
        if segment >= Self.loopbackSegment || (try? peerAddress().staysInMachine) == true {
            try? setSocketOption(descriptor, SOL_SOCKET, SO_SNDBUF, Self.sendQueueOnLoopback)
        } else {
            try? setSocketOption(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, Self.mostUnsent)
        }
    }
}
