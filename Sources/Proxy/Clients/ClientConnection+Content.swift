import Bytes
import HTTPSemantics
import Libevent

/// The content of the request under way, on to its transaction.
extension ClientConnection {
    /// Goes through what is in the buffer, as far as one turn takes it.
    func readContent() {
        input.content?.beginTurn()
        while phase == .serving, let context = input.context, let reader = input.content {
            let buffer = context.buffer
            let event: ContentReader.Event
            do throws(MessageSyntaxError) {
                event = try reader.next(in: buffer.span)
            } catch {
                // Its head may have been answered; what follows cannot be trusted.
                if output.firstByteSent == 0, output.delivery == nil { return refuse(error) }
                return end()
            }
            switch event {
            case .needMore(let consumed):
                context.buffer.consume(consumed)
                switch transaction?.wantsContent() ?? .more {
                case .more:
                    if deadline.waitsFor == nil { due(.content, worker.timeouts.content) }
                case .little:
                    notDue(.content)
                case .nothing:
                    stopReading()
                    notDue(.content)
                }
                return
            case .piece(let range, let consumed):
                let goesOn = transaction?.receive(content: buffer.span.extracting(range)) ?? true
                // It may have been answered by that, and the connection be at its end.
                guard phase == .serving else { return }
                context.buffer.consume(consumed)
                // A client that does not take its response is cut for that, however much it sends.
                if deadline.waitsFor != .send { contentCame(range.count) }
                if !goesOn {
                    stopReading()
                    return notDue(.content)
                }
            case .end(let trailers, let consumed):
                context.buffer.consume(consumed)
                input.contentEnded()
                keepWhatFollows(context)
                notDue(.content)
                if let removed = reader.removedTrailer, let request = transaction?.request {
                    worker.notices.removed([removed], from: request)
                }
                transaction?.endContent(trailers: trailers)
                finishIfDone()
            case .turnIsOver:
                // Nothing more is read until this is done: it would need a larger buffer, and go before others' turns.
                stopReading()
                // It waits for us.
                notDue(.content)
                return worker.turns.put { [self] in resumeContent() }
            case .tooLarge:
                guard let delivery = output.delivery else { return answerInstead(.contentTooLarge) }
                // An origin that answers while it reads may wait for the rest for ever.
                guard delivery.followed?.phase != .open else { return end() }
                // What is here whole is sent; nothing more is read before it.
                stopReading()
                input.contentEnded()
                notDue(.content)
                return output.beLast()
            }
        }
    }

    /// Every byte gives time for the next, but a few give no more than the lowest rate does.
    private func contentCame(_ count: Int) {
        let (now, timeouts) = (loop.now, worker.timeouts)
        let left = deadline.waitsFor == .content ? deadline.time - now : timeouts.content
        due(.content, timeouts.forContent(left: left, after: count))
    }

    /// What the client has sent ahead moves out of the large buffer, which others need.
    private func keepWhatFollows(_ context: ReadContext) {
        // `serve` goes on with the buffer that it has.
        guard !input.isBeingTaken, context.purpose == .content, !context.buffer.isEmpty else { return }
        let other = worker.lendContext()
        other.buffer.append(context.buffer.copied())
        giveBackContext()
        input.borrow(other)
    }
}
