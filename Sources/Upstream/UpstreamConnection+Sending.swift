import Bytes
import Libevent
import Telemetry

/// Sends the request, and its content as the client sends it, to the origin.
extension UpstreamConnection {
    func send(_ content: Span<UInt8>) -> Bool {
        guard phase == .leased, let exchange, !content.isEmpty else { return true }
        let outgoing = lease.outgoing
        // Content is sent directly from the buffer into which it was read, as far as the kernel takes it. Only the rest
        // is copied. Chunks, which may be small, are sent together. A few bytes of content that came with the head are
        // not sent at once: the check for a dead idle connection comes first.
        let goesAtOnce =
            outgoing?.framing == .length && outgoing?.count == 0
            && !(flushesSoon && content.count <= OutgoingContent.mostEarly)
        let taken = goesAtOnce ? sendAtOnce(content, head: exchange.request.head) : 0
        // The connection was dead. The request has returned to the exchange, which looks for another connection.
        guard phase == .leased else { return exchange.send(content) }
        lease.outgoing?.append(content.extracting(taken..<content.count))
        if taken == content.count {
            allSent()
        } else if goesAtOnce {
            if lease.sendFailure == nil { awaitRoom() }
        } else if !isWriteArmed {
            flushSoon()
        }
        lease.contentIsHeldBack = isWriteArmed
        return !isWriteArmed
    }

    /// - Returns: the number of bytes of `content` that were sent. Fewer than all: the socket is full, or broken.
    private func sendAtOnce(_ content: Span<UInt8>, head: ByteSlice) -> Int {
        if isFoundDead() { return 0 }
        switch lease.headLeft == 0 ? write(content) : write(head.span.extracting(last: lease.headLeft), content) {
        case .wrote(let count): return sent(count)
        case .wouldBlock: return 0
        case .failed(let error): stopSending(error); return 0
        }
    }

    /// Flushes at the end of the loop's iteration, together with all bytes added until then.
    func flushSoon() {
        guard !flushesSoon else { return }
        flushesSoon = true
        callAtIterationEnd()
    }

    func endContent(trailers: ByteSlice?) {
        guard phase == .leased else { return }
        lease.outgoing?.end(trailers: trailers)
        if !flushesSoon { flush() }
    }

    func flush() {
        if phase == .leased, let exchange { flush(exchange.request.head) }
    }

    /// - Parameter head: the head of the exchange's request.
    func flush(_ head: ByteSlice) {
        if isFoundDead() { return }
        while lease.hasMore {
            let rest = head.span.extracting(last: lease.headLeft)
            let content = lease.outgoing
            let offered = rest.count + (content?.count ?? 0)
            let result =
                if let content, content.count > 0 {
                    write(rest, content.pieces, from: content.taken)
                } else {
                    write(rest)
                }
            switch result {
            case .wrote(let count):
                let ofContent = sent(count)
                content?.took(ofContent)
                if count < offered { return awaitRoom() }
            case .wouldBlock: return awaitRoom()
            case .failed(let error): return stopSending(error)
            }
        }
        allSent()
    }

    private func write(_ rest: Span<UInt8>, _ pieces: ByteBuffer, from start: Int) -> WriteResult {
        let content = pieces.span.extracting(start...)
        return rest.isEmpty ? write(content) : write(rest, content)
    }

    /// Checks, before the first byte of a request that cannot be sent twice is sent, whether the server has closed the
    /// connection, or sent bytes, while it was idle. A close after this check crosses the request on its way.
    private func isFoundDead() -> Bool {
        guard lease.looksFirst else { return false }
        lease.looksFirst = false
        guard lease.isUnsent, !isSilent else { return false }
        fail(.closed, .notSilent)
        return true
    }

    /// Waits until the full socket has room.
    private func awaitRoom() {
        armWrite()
        if stream != nil { lease.isEncrypted = true }
        if lease.response != .inBody { expectBeforeHead() }
    }

    /// Called when no byte waits to be sent at the moment.
    private func allSent() {
        disarmWrite()
        // The content's memory is not kept while the response arrives, nor on an idle connection.
        if let outgoing = lease.outgoing, outgoing.isEnded { lease.outgoing = nil }
        if lease.sent == nil, lease.isSent { lease.sent = loop.now }
        if lease.response != .inBody { expectBeforeHead() }
        releaseContent()
    }

    private func releaseContent() {
        guard lease.contentIsHeldBack else { return }
        lease.contentIsHeldBack = false
        exchange?.takesContent()
    }

    /// - Returns: how many of the `count` sent bytes belong to the content.
    private func sent(_ count: Int) -> Int {
        pool.countOut(count)
        let ofHead = min(count, lease.headLeft)
        lease.headLeft -= ofHead
        progressed()
        return count - ofHead
    }

    /// Stops sending, and reads the response that the origin may have sent before it closed (RFC 9112 §9.5).
    private func stopSending(_ error: SystemError) {
        // Bytes from a reused connection do not answer a request of which the server took no byte.
        if lease.isReused, lease.isUnsent { return fail(.send, .resetBeforeResponse, "\(error)") }
        disarmWrite()
        lease.sendFailure = error
        lease.headLeft = 0
        lease.outgoing = nil
        releaseContent()
    }
}
