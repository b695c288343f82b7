import Bytes
import Libevent
import Telemetry

/// The request, and its content as the client sends it, on to the origin.
extension UpstreamConnection {
    func send(_ content: Span<UInt8>) -> Bool {
        guard phase == .leased, let exchange, !content.isEmpty else { return true }
        let outgoing = lease.outgoing
        // Straight from where it was read, as far as the kernel takes it; only the rest is copied. Chunks, which may be
        // small, go out together. Not the little that came with a head: that goes out when it is known whether an idle
        // connection is still one.
        let goesAtOnce =
            outgoing?.framing == .length && outgoing?.count == 0
            && !(flushesSoon && content.count <= OutgoingContent.mostEarly)
        let taken = goesAtOnce ? sendAtOnce(content, head: exchange.request.head) : 0
        // It was dead, and the request has gone back to the exchange, which looks for another.
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

    /// - Returns: how much of `content` went out. Less than all: the socket is full, or broken.
    private func sendAtOnce(_ content: Span<UInt8>, head: ByteSlice) -> Int {
        if isFoundDead() { return 0 }
        switch lease.headLeft == 0 ? write(content) : write(head.span.extracting(last: lease.headLeft), content) {
        case .wrote(let count): return sent(count)
        case .wouldBlock: return 0
        case .failed(let error): stopSending(error); return 0
        }
    }

    /// Flushes at the end of the loop's iteration, with what else is to be sent by then.
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

    /// - Parameter head: of the exchange's request.
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

    /// Before anything of a request goes out that cannot be sent twice: whether the server has closed the connection while
    /// it was idle, or said something. What comes after this look crosses the request on its way.
    private func isFoundDead() -> Bool {
        guard lease.looksFirst else { return false }
        lease.looksFirst = false
        guard lease.isUnsent, !isSilent else { return false }
        fail(.closed, .notSilent)
        return true
    }

    /// The socket is full.
    private func awaitRoom() {
        armWrite()
        if lease.response != .inBody { expectBeforeHead() }
    }

    /// Nothing waits to be sent at the moment.
    private func allSent() {
        disarmWrite()
        // Its memory is not kept for as long as the response takes, nor on an idle connection.
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

    /// - Returns: how many of the `count` bytes that went out are after the head.
    private func sent(_ count: Int) -> Int {
        pool.metrics.add(.upstreamBytesOut, UInt64(count))
        let ofHead = min(count, lease.headLeft)
        lease.headLeft -= ofHead
        progressed()
        return count - ofHead
    }

    /// The origin may have answered before it closed (RFC 9112 §9.5): sends no more, and reads what there is.
    private func stopSending(_ error: SystemError) {
        // What stands on a connection that was idle is no answer to a request of which it took nothing.
        if lease.isReused, lease.isUnsent { return fail(.send, .resetBeforeResponse, "\(error)") }
        disarmWrite()
        lease.sendFailure = error
        lease.headLeft = 0
        lease.outgoing = nil
        releaseContent()
    }
}
