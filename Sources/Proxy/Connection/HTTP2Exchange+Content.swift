import Bytes
import HTTP2
import HTTPSemantics
import Libevent
import Routing
import Telemetry

/// Taking the content of the request. Its client may send as much ahead as a window holds (RFC 9113 §5.2); the window
/// grows by the bytes that the transaction has taken.
extension HTTP2Exchange {
    func take(content piece: Span<UInt8>) {
        guard content != nil else { return drop(piece.count) }
        content?.size += UInt64(piece.count)
        content?.unused += piece.count
        if let most = context.settings.clients.maxBodySize, content?.size ?? 0 > UInt64(most) {
            return contentIsTooLarge()
        }
        guard let taker = transaction?.content else { return giveBack() }
        let goesOn = taker.receive(piece)
        guard content != nil else { return }
        if deadline?.waitsFor != .taking { contentCame(piece.count) }
        if goesOn { settleContent() } else { noContentIsDue() }
    }

    /// All content received has been taken: lets the client send more, if more is wanted.
    func settleContent() {
        guard content != nil, let taker = transaction?.content else { return }
        switch taker.wanted() {
        case .more:
            giveBack()
            if deadline?.waitsFor == nil { awaitContent() }
        case .little, .nothing: noContentIsDue()
        }
    }

    private func drop(_ count: Int) { connection.tell { $0.consumed(count, of: id) } }

    private func contentIsTooLarge() {
        guard let delivery else { return answerInstead(.contentTooLarge) }
        // An origin that is still sending its response while it reads the content may wait for the rest of the
        // content forever.
        if delivery.followed?.phase == .open { return reset(.noError) }
        endContent()
    }

    func take(trailers text: Span<UInt8>) {
        guard let content else { return }
        var trailers: ByteSlice?
        do throws(MessageSyntaxError) {
            trailers = try content.trailers(in: text) { removed in
                if let arrival = transaction?.arrival { context.notices.removed([removed], from: arrival) }
            }
        } catch {
            return reset(.protocolError)
        }
        self.content = nil
        noContentIsDue()
        transaction?.content?.end(trailers: trailers)
    }

    func contentIsComplete() {
        isComplete = true
        guard content != nil else { return }
        content = nil
        noContentIsDue()
        transaction?.content?.end(trailers: nil)
    }

    func resumeContent() {
        giveBack()
        settleContent()
    }

    /// Lets the client send as much more as was taken.
    private func giveBack() {
        guard let count = content?.unused, count > 0 else { return }
        content?.unused = 0
        connection.tell { session in
            session.consumed(count, of: id)
            // Content that comes before there is an origin for it is kept here.
            if transaction?.unsharedFetch?.hasBegun == true { session.widen(id) }
        }
    }

    /// The rest of the content is not needed: what comes of it is dropped.
    func endContent() {
        giveBack()
        content = nil
        noContentIsDue()
    }

    // MARK: Time

    func awaitContent() { due(.content, connection.clients.timeouts.content) }

    /// Every byte extends the deadline for the next, but by no more time than that byte takes at `min-body-rate`.
    private func contentCame(_ count: Int) {
        let (now, timeouts) = (connection.loop.now, connection.clients.timeouts)
        let left = deadline?.waitsFor == .content ? (deadline?.time ?? now) - now : timeouts.content
        due(.content, timeouts.forContent(left: left, after: count))
    }

    func noContentIsDue() {
        if deadline?.waitsFor == .content { deadline?.clear() }
    }
}
