internal import Glibc

/// What one write gave.
public enum WriteResult: Sendable, Equatable {
    /// So many bytes went out, perhaps fewer than were offered: then arm for writing and send the rest later.
    case wrote(Int)
    /// The socket is full; arm for writing.
    case wouldBlock
    /// The connection is broken.
    case failed(SystemError)
}

/// Writing straight to the kernel: one system call each, nothing kept. On the loop's thread, while the socket is open.
/// A peer that went away is a result like any other: no signal is raised.
extension Socket {
    /// Writes what the kernel takes now. On the socket's loop; never waits.
    public final func write(_ bytes: Span<UInt8>) -> WriteResult {
        unsafe bytes.withUnsafeBytes { bytes in
            let count = retryingInterrupted {
                unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            }
            return outcome(count)
        }
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
            return outcome(retryingInterrupted { unsafe Glibc.send(descriptor, vectors[0].iov_base, vectors[0].iov_len, Int32(MSG_NOSIGNAL)) })
        }
        var message = unsafe msghdr()
        unsafe message.msg_iov = vectors
        unsafe message.msg_iovlen = count
        return outcome(retryingInterrupted { unsafe sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL)) })
    }

    private func outcome(_ count: Int) -> WriteResult {
        if count >= 0 { return .wrote(count) }
        let code = errno
        return code == EAGAIN || code == EWOULDBLOCK ? .wouldBlock : .failed(SystemError(.send, code: code))
    }
}
