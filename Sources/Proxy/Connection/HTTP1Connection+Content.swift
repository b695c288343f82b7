import Bytes
import HTTPSemantics
import Libevent
import Routing

/// Reading the content of the current request and passing it to the request's transaction.
extension HTTP1Connection {
    /// Decodes the bytes in the buffer, at most as many pieces as fit into one turn.
    func readContent() {
        content?.beginTurn()
        while phase == .serving, let input, let reader = content {
            let buffer = input.buffer
            let event: ContentReader.Event
            do throws(MessageSyntaxError) {
                event = try reader.next(in: buffer.span)
            } catch {
                // The response may have begun already, so an error response is possible only before its first byte. The
                // bytes after malformed content cannot be trusted.
                if firstByteSent == 0, delivery == nil { return refuse(error) }
                return end()
            }
            switch event {
            case .needMore(let consumed):
                input.buffer.consume(consumed)
                switch transaction?.content?.wanted() ?? .more {
                case .more:
                    if deadline.waitsFor == nil { due(.content, clients.timeouts.content) }
                case .little:
                    notDue(.content)
                case .nothing:
                    stopReading()
                    notDue(.content)
                }
                return
            case .piece(let range, let consumed):
                let goesOn = transaction?.content?.receive(buffer.span.extracting(range)) ?? true
                // `receive` may have sent the response and closed the connection.
                guard phase == .serving else { return }
                input.buffer.consume(consumed)
                // The send timeout stays in force however much content arrives: a client must take its response.
                if deadline.waitsFor != .send { contentCame(range.count) }
                if !goesOn {
                    stopReading()
                    return notDue(.content)
                }
            case .end(let trailers, let consumed):
                input.buffer.consume(consumed)
                content = nil
                // `serve` continues with the buffer that it holds.
                if !isTaking { moveFromLargeBuffer() }
                notDue(.content)
                if let removed = reader.removedTrailer, let arrival = transaction?.arrival {
                    context.notices.removed([removed], from: arrival)
                }
                transaction?.content?.end(trailers: trailers)
                finishIfDone()
            case .turnIsOver:
                // Stop reading until the buffer is decoded: further bytes would need a larger buffer, and would be
                // served before the turns of other connections.
                stopReading()
                // The client waits for this loop, so it has no deadline.
                notDue(.content)
                return context.turns.put { [self] in resumeContent() }
            case .tooLarge:
                guard let delivery else { return answerInstead(.contentTooLarge) }
                // An origin that is still sending its response while it reads the content may wait for the rest of the
                // content forever.
                guard delivery.followed?.phase != .open else { return end() }
                // The response is complete here: send it, and read no more content.
                stopReading()
                content = nil
                notDue(.content)
                keepsAlive = false
                return
            }
        }
    }

    /// Every byte extends the deadline for the next, but by no more time than that byte takes at `min-body-rate`.
    private func contentCame(_ count: Int) {
        let (now, timeouts) = (loop.now, clients.timeouts)
        let left = deadline.waitsFor == .content ? deadline.time - now : timeouts.content
        due(.content, timeouts.forContent(left: left, after: count))
    }
}
