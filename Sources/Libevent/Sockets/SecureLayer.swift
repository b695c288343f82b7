import CLibevent

/// What encrypts and decrypts the bytes of one socket; the target `TLS` has the subclass. The layer makes the system
/// calls, on the socket's descriptor.
///
/// Owned by its socket, which calls it on the loop's thread. The stream ends as it does without a layer: an end that
/// the peer has not announced in encrypted form is a failure, since anyone on the way can end a connection.
@safe open class SecureLayer {
    /// For subclasses.
    public init() {}

    /// Decrypts bytes into `memory`, which has room for at least one.
    open func receive(_ memory: UnsafeMutableRawBufferPointer) -> ReadResult { .wouldBlock }

    /// Encrypts and sends `bytes` as far as the kernel takes them. Bytes that are not written count as not sent: the
    /// next call begins with them.
    open func send(_ bytes: UnsafeRawBufferPointer) -> WriteResult { .wouldBlock }

    /// Whether the layer has read bytes from the kernel that `receive` has not returned yet, so that the loop does not
    /// report them.
    open var holdsBytes: Bool { false }

    /// Whether no bytes, no end and no error wait to be read. Consumes no byte of the stream.
    open var isSilent: Bool { true }

    /// Announces the end of the stream to the peer, behind all bytes that were written. May be called again.
    /// - Returns: whether the kernel has taken the announcement, or cannot take it any more. Otherwise it waits for
    ///   room, and the caller calls again when there is some.
    open func endStream() -> Bool { true }

    /// The most bytes of one record, and so of one `send` by `write`.
    static let record = 16 << 10
}

/// The pieces of one write, sent through a layer as few records as possible: small pieces are gathered, large ones are
/// sent from where they are.
extension SecureLayer {
    /// - Parameter scratch: memory of `record` bytes.
    final func send(
        _ pieces: UnsafeBufferPointer<iovec>, through scratch: UnsafeMutableRawBufferPointer
    ) -> WriteResult {
        var (sent, gathered) = (0, 0)
        for index in pieces.indices {
            // The caller keeps the piece alive, and nothing writes to it.
            var piece = unsafe UnsafeRawBufferPointer(start: pieces[index].iov_base, count: pieces[index].iov_len)
            while unsafe !piece.isEmpty {
                if gathered == 0, piece.count >= Self.record || index == pieces.count - 1 {
                    let whole = index == pieces.count - 1 ? piece.count : piece.count / Self.record * Self.record
                    guard let result = unsafe send(piece.prefix(whole), counting: &sent) else {
                        unsafe piece = UnsafeRawBufferPointer(rebasing: piece.dropFirst(whole))
                        continue
                    }
                    return result
                }
                let count = min(piece.count, Self.record - gathered)
                unsafe scratch.baseAddress?.advanced(by: gathered).copyMemory(
                    from: piece.baseAddress!, byteCount: count)
                gathered += count
                unsafe piece = UnsafeRawBufferPointer(rebasing: piece.dropFirst(count))
                guard gathered == Self.record else { continue }
                if let result = unsafe send(scratch.prefix(gathered), counting: &sent) { return result }
                gathered = 0
            }
        }
        guard gathered > 0 else { return .wrote(sent) }
        return unsafe send(scratch.prefix(gathered), counting: &sent) ?? .wrote(sent)
    }

    /// - Returns: the result of the whole write if it ends here; `nil` if all of `bytes` were sent.
    private final func send(_ bytes: Slice<UnsafeRawBufferPointer>, counting sent: inout Int) -> WriteResult? {
        switch unsafe send(UnsafeRawBufferPointer(rebasing: bytes)) {
        case .wrote(let count):
            sent += count
            return unsafe count < bytes.count ? .wrote(sent) : nil
        case .wouldBlock: return sent > 0 ? .wrote(sent) : .wouldBlock
        // The bytes before are sent; the next call fails again.
        case .failed(let error): return sent > 0 ? .wrote(sent) : .failed(error)
        }
    }

    private final func send(_ bytes: Slice<UnsafeMutableRawBufferPointer>, counting sent: inout Int) -> WriteResult? {
        unsafe send(UnsafeRawBufferPointer(UnsafeMutableRawBufferPointer(rebasing: bytes))[...], counting: &sent)
    }
}
