import Bytes
import HTTPSemantics
import Libevent
import Telemetry

/// Receives the response and passes it on to the exchange part by part.
extension UpstreamConnection {
    func resumeReading() {
        guard phase == .leased, case .paused(let refused) = lease.reading else { return }
        lease.reading = .resuming
        defer { if lease.isResuming { lease.reading = .on } }
        if let refused {
            guard let exchange, offer(refused.span, to: exchange), phase == .leased else { return }
        }
        // The last piece filled the window of its body: no more bytes come that would lead to the end, and the buffer
        // was given back.
        if input == nil, reader.use({ $0.hasEnded }) { return complete(trailers: nil) }
        startReading()
        progressed()
        if let input { process(input) }
    }

    /// The least free bytes for each read, since each read is a system call.
    static let smallestRead = 16 << 10

    func receive() {
        if input == nil { input = pool.lendBuffer() }
        guard let buffer = input else { return }
        switch read(into: buffer, minimum: Self.smallestRead) {
        case .bytes(let count):
            pool.countIn(count)
            if lease.response == .awaited { lease.response = .begun }
            progressed()
            // Large content is processed at once, while it is in the processor's cache.
            if lease.response == .begun, count <= Self.smallestRead { pool.handleLater(self) } else { process(buffer) }
        case .wouldBlock:
            lease.paused = nil
        case .endOfStream:
            endOfStream()
        case .failed(let error):
            if let stream, !error.isReset { return cutOff(stream) }
            if lease.response == .awaited {
                fail(.closed, .resetBeforeResponse, "\(error)")
            } else {
                fail(.body, .resetInBody, "\(error)")
            }
        }
    }

    private func endOfStream() {
        switch reader.use({ $0.endOfStream() }) {
        case .complete:
            // After sending has reported a reset, reading reports an ordinary end: no sign shows that the body is
            // complete.
            if let error = lease.sendFailure, error.isReset { return fail(.body, .resetInBody, "\(error)") }
            complete(trailers: nil)
        case .beforeHead:
            fail(lease.sendFailure == nil ? .closed : .send, .closedBeforeResponse, lease.sendFailure.map { "\($0)" })
        case .truncated: fail(.body, .cutOff)
        }
    }

    /// Text about the limit that was exceeded: the setting that changes it, or its value.
    private func hint(to reason: MessageSyntaxError.Reason) -> String {
        let (head, trailers) = (HeadLimits.response, HeadLimits.trailers)
        return switch reason {
        case .headTooLarge: " See the upstream's max-head-size."
        case .tooManyFields where lease.response == .inBody: " Trailers may have \(trailers.maxFieldLines)."
        case .tooManyFields: " A response may have \(head.maxFieldLines)."
        case .trailersTooLarge: " It may have \(trailers.maxHeadBytes) bytes."
        // The other reasons are not about a limit.
        default: ""
        }
    }

    /// Processes the bytes of the buffer, one part of the message at a time, until more bytes are needed or processing
    /// must stop.
    /// - Parameter input: the connection's input buffer, which may be given back during the call.
    func process(_ input: ByteBuffer) {
        guard let exchange else { return }
        // Other connections may use the buffer while this connection waits.
        defer { if lease.response == .inBody, self.input === input, input.isEmpty { giveBackInput() } }
        while phase == .leased, !lease.isPaused {
            let event: ResponseReader.Event
            do throws(MessageSyntaxError) {
                event = try reader.use { reader throws(MessageSyntaxError) in try reader.next(in: input.span) }
            } catch {
                return fail(
                    lease.response == .inBody ? .body : error.exceedsHead ? .headTooLarge : .head,
                    .syntax(error.reason), "\(error.explanation)\(hint(to: error.reason))", isMalformed: true)
            }
            switch event {
            case .needMore:
                return
            case .interim(let length):
                guard !reader.use({ $0.hasTooManyInterim }) else { return fail(.head, .tooManyInterimResponses) }
                pool.countResponse(.informational)
                reader.use { exchange.received(interim: $0.head(in: input.span)) }
                // The handler may have ended the exchange.
                guard phase == .leased else { return }
                input.consume(length)
                // The origin is working on the request, or waits for the content.
                expectBeforeHead()
            case .switched:
                guard exchange.request.asksForUpgrade else { return fail(.head, .unaskedSwitch) }
                // A server must not change the protocol in the middle of a request (RFC 9110 §7.8): the rest of the
                // content would be taken for the new protocol.
                guard lease.isSent else { return fail(.head, .earlySwitch) }
                countFinalHead()
                leaveHTTP()
                reader.use { exchange.upgraded(head: $0.head(in: input.span)) }
                self.exchange = nil
                return giveBackInput()
            case .head(let length):
                if !exchange.request.mayBeNotModified, reader.use({ $0.status == .notModified }) {
                    return fail(.head, .unaskedNotModified)
                }
                // The server wrote this 408 to the idle connection, and it crossed the request on its way (RFC 9110
                // §15.5.9).
                if lease.isReused, reader.use({ $0.isServerTimeout }), exchange.isHeld,
                    pool.settings.retriesDeadConnection
                {
                    return fail(.closed, .idleTimeIsUp, isNoResponse: true)
                }
                countFinalHead()
                if reader.use({ $0.mayHaveTerms }) { noteTerms(reader.use { $0.terms(in: input.span) }) }
                reader.use { exchange.received(final: $0.head(in: input.span), on: self) }
                guard phase == .leased else { return }
                input.consume(length)
                lease.response = .inBody
                expect(.progress, within: patience)
            case .body(let range, let consumed, let isLast):
                let isTaken = range.isEmpty || offer(input.span.extracting(range), to: exchange)
                guard phase == .leased else { return }
                input.consume(consumed)
                // Otherwise the reader returns the end once more when reading resumes.
                if isLast, isTaken { return complete(trailers: nil) }
            case .end(let trailers, let consumed):
                input.consume(consumed)
                // The handler may lease this connection again.
                return complete(trailers: trailers)
            }
        }
    }

    private func noteTerms(_ terms: (keepAliveSeconds: UInt32?, challengesConnection: Bool)) {
        if terms.challengesConnection { lease.isForOneClient = true }
        if let seconds = terms.keepAliveSeconds { noteStatedTime(seconds) }
    }

    /// Counts the final head. A head that came before the whole request was sent has a waiting time of 0.
    private func countFinalHead() {
        let now = loop.now
        if lease.isReused { home.noteIdle(lease.idleBefore, wasClosed: false) }
        pool.countFinalResponse(
            StatusClass(status: reader.use { $0.status.code }), after: UInt64(max(0, now - (lease.sent ?? now))))
    }

    /// Hands the connection over to a tunnel.
    private func leaveHTTP() {
        enter(.handedOver)
        stopReading()
        stopWaiting()
    }

    /// - Returns: false if the exchange takes no more bytes at the moment.
    private func offer(_ body: Span<UInt8>, to exchange: Exchange) -> Bool {
        switch exchange.received(body: body) {
        case .taken:
            return true
        case .takenAndFull:
            pause(refused: nil)
        case .refused(let taken):
            pause(refused: ByteSlice(copying: body.extracting(taken..<body.count)))
        }
        return false
    }

    private func pause(refused: ByteSlice?) {
        lease.reading = .paused(refused: refused)
        lease.paused = lease.paused ?? loop.now
        stopReading()
        stopWaiting()
    }

    private func complete(trailers: ByteSlice?) {
        let exchange = exchange.take()
        // No request asked for bytes behind the response: the connection's framing cannot be trusted (RFC 9112 §9.3).
        let isReusable =
            reader.use({ $0.keepsAlive }) && lease.isSent && lease.sendFailure == nil && (input?.isEmpty ?? true)
            && !lease.isResuming
        giveBackInput()
        if lease.isForOneClient, owner == nil {
            end(.clientEnded)
        } else if let why = isReusable ? becomeIdle() : .notReusable {
            end(why)
        }
        exchange?.completed(trailers: trailers)
    }
}

extension MessageSyntaxError {
    /// Whether a head exceeds a limit.
    fileprivate var exceedsHead: Bool { reason == .headTooLarge || reason == .tooManyFields }
}
