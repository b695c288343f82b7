import Bytes
import HTTPSemantics
import Libevent
import Telemetry

/// The response, part by part, on to the exchange.
extension UpstreamConnection {
    func resumeReading() {
        guard phase == .leased, readingIsPaused else { return }
        readingIsPaused = false
        if let piece = refused {
            refused = nil
            guard offer(piece.span) else { return }
        }
        startReading()
        progressed()
        process()
    }

    func receive() {
        let buffer = input ?? pool.buffers.lend()
        input = buffer
        switch read(into: buffer, minimum: 16 << 10) {
        case .bytes(let count):
            pool.metrics.add(.upstreamBytesIn, UInt64(count))
            hasReceivedBytes = true
            progressed()
            process()
        case .wouldBlock:
            break
        case .endOfStream:
            endOfStream()
        case .failed(let error):
            fail(hasReceivedBytes ? .body : .closed, "\(error)")
        }
    }

    func endOfStream() {
        switch reader?.endOfStream() {
        case .complete: complete(trailers: nil)
        case .beforeHead: fail(sendFailure == nil ? .closed : .send, sendFailure.map { "\($0)" } ?? "closed before a response")
        case .truncated: fail(.body, "closed in the middle of the body")
        case nil: end()
        }
    }

    /// Takes what the buffer holds, message part by message part, until it needs more or must stop.
    func process() {
        while phase == .leased, !readingIsPaused, let input, let exchange, reader != nil {
            let event: ResponseReader.Event
            do throws(MessageSyntaxError) {
                event = try reader?.next(in: input.span) ?? .needMore
            } catch {
                return fail(reader?.isInBody == true ? .body : .head, "\(error.explanation)", isMalformed: true)
            }
            switch event {
            case .needMore:
                if input.isEmpty, reader?.isInBody == true { giveBackInput() }
                return
            case .interim(let length):
                guard let reader, !reader.hasTooManyInterim else { return fail(.head, "too many interim responses") }
                exchange.received(interim: reader.head(in: input.span))
                headTaken(length)
            case .switched(let length):
                return switchProtocols(exchange, input, length)
            case .head(let length):
                guard let reader else { return }
                exchange.received(final: reader.head(in: input.span))
                headTaken(length)
            case .body(let range, let consumed):
                if !range.isEmpty { _ = offer(input.span.extracting(range)) }
                if phase == .leased { input.consume(consumed) }
            case .end(let trailers, let consumed):
                input.consume(consumed)
                complete(trailers: trailers)
            }
        }
    }

    func headTaken(_ length: Int) {
        // The handler may have ended the exchange.
        guard phase == .leased else { return }
        input?.consume(length)
        reader?.headTaken()
        if reader?.isInBody == true {
            due(.progress, after: pool.settings.noProgressTimeout)
        } else {
            // An interim response: the origin is at work, or waits for the content.
            dueBeforeHead()
        }
    }

    func switchProtocols(_ exchange: Exchange, _ input: ByteBuffer, _ length: Int) {
        guard exchange.request.asksForUpgrade, let reader else { return fail(.head, "101 without having been asked") }
        phase = .handedOver
        stopReading()
        deadline.clear()
        self.exchange = nil
        handedOverHeadLength = length
        exchange.upgraded(self, head: reader.head(in: input.span))
    }

    /// False when the exchange wants no more at the moment.
    func offer(_ body: Span<UInt8>) -> Bool {
        switch exchange?.received(body: body) {
        case .taken:
            return true
        case .takenAndFull:
            pause()
        case .refused(let taken):
            refused = ByteSlice(copying: body.extracting(taken..<body.count))
            pause()
        case nil:
            return false
        }
        return false
    }

    func pause() {
        readingIsPaused = true
        stopReading()
        deadline.clear()
    }

    func complete(trailers: ByteSlice?) {
        let exchange = exchange
        self.exchange = nil
        // Anything behind the response was not asked for: the connection's framing cannot be trusted (RFC 9112 §9.3).
        let isReusable = reader?.keepsAlive == true && requestIsSent && sendFailure == nil && (input?.isEmpty ?? true)
        giveBackInput()
        if isReusable, pool.keep(idle: self) {
            phase = .idle
            due(.idle, after: pool.settings.idleTimeout)
        } else {
            end()
        }
        exchange?.completed(trailers: trailers)
    }
}
