import Bytes
import HTTPSemantics
import Libevent
import TLS

/// One request to the admin listener and the response to it.
///
/// ```
/// shaking ─handshake done, or a request in the clear, which is refused→ readingHead
/// readingHead ─head complete→ readingContent ─end→ waiting ─page→ sending ─all out→ closed
///      └─bad syntax────────────────┴─bad syntax, too large, 100 refused→ sendingEarly
/// sendingEarly ─all out→ lingering ─peer closes→ closed
/// any state ─error, timeout→ closed
/// ```
final class AdminConnection: Socket {
    /// Enough for a head and for a URL to purge.
    private static let limits = HeadLimits(maxHeadBytes: 16 << 10, maxFieldLines: 64, maxTargetLength: 8 << 10)

    private enum State {
        /// With TLS alone; `nil`: nothing has arrived.
        case shaking(TLSStream?)
        case readingHead
        case readingContent(Request)
        case waiting, sending
        /// The response, sent before the request has arrived whole. If the connection were closed right after it, the
        /// rest of the request would make the kernel reset the connection, and the response might get lost (RFC 9112
        /// §9.6).
        case sendingEarly
        case lingering, closed
    }

    /// The content of a request's head.
    private struct Request {
        let path: String
        /// The answer that refuses the request, once it has arrived whole or its client waits for 100 (Continue); `nil`
        /// if the request is allowed.
        let refusal: AdminPage?
        var decoder: BodyDecoder
    }

    private let pages: AdminPages
    private unowned let server: AdminServer
    private var state: State
    /// Whether the client speaks in the clear to a listener with TLS.
    private var lacksTLS = false
    private let input = ByteBuffer(capacity: 2048)
    private let output = ByteBuffer(capacity: 4096)
    private var parser = RequestHeadParser(limits: AdminConnection.limits)
    private let content = ByteBuffer(capacity: 256)
    private var deadline = Deadline.none

    init(
        adopting descriptor: consuming Descriptor, on loop: EventLoop, pages: AdminPages,
        of server: AdminServer
    ) {
        self.pages = pages
        self.server = server
        state = server.isSecure ? .shaking(nil) : .readingHead
        super.init(adopting: descriptor, on: loop)
        due(within: AdminServer.requestTimeout)
        startReading()
    }

    /// Sets the deadline for the peer's next step, in nanoseconds from now; `nil` for no deadline.
    private func due(within nanoseconds: Int64?) {
        loop.deadlines.cancel(deadline)
        deadline = nanoseconds.map { loop.deadlines.arm(self, after: $0) } ?? .none
    }

    /// Whether the request has not arrived whole, even if it has been answered already.
    var awaitsRequest: Bool {
        switch state {
        case .shaking, .readingHead, .readingContent, .sendingEarly, .lingering: true
        case .waiting, .sending, .closed: false
        }
    }

    func end() {
        if case .closed = state { return }
        state = .closed
        loop.deadlines.cancel(deadline)
        close()
        server.ended(self)
    }

    override func cannotWatch(_ error: SystemError) { end() }

    override func deadlineReached() -> Int64? {
        deadline = .none
        end()
        return nil
    }

    /// Goes on with the handshake, as far as the client's bytes lead.
    private func shake(_ begun: TLSStream?) {
        var stream = begun
        if stream == nil {
            switch firstByte {
            case .nothing: return
            case .ended: return end()
            // Methods are in capitals; a record of a handshake begins with 22.
            case .byte(UInt8(ascii: "A")...UInt8(ascii: "Z")):
                lacksTLS = true
                state = .readingHead
                return
            case .byte:
                stream = server.secure(self)
                state = .shaking(stream)
            }
        }
        guard let stream else { return end() }
        do throws(TLSFailure) {
            guard try goOn(with: stream) else { return }
            state = .readingHead
            // OpenSSL may hold the request already, of which the loop does not tell.
            readable()
        } catch {
            end()
        }
    }

    override func readable() {
        if case .shaking(let stream) = state { return shake(stream) }
        let input = input
        switch read(into: input) {
        case .bytes: received(input)
        case .wouldBlock: break
        case .endOfStream, .failed: end()
        }
    }

    private func received(_ input: ByteBuffer) {
        switch state {
        case .readingHead, .readingContent:
            do throws(MessageSyntaxError) {
                try take(input)
            } catch {
                answer(AdminPage(status: error.status, text: "\(error.explanation)\n"))
            }
        // The connection reads no bytes while its request waits and is answered; the rest of the request is dropped.
        case .shaking, .waiting, .sending, .sendingEarly, .lingering, .closed: input.removeAll()
        }
    }

    private func take(_ input: ByteBuffer) throws(MessageSyntaxError) {
        if case .readingHead = state {
            guard case .complete(let length) = try parser.parse(input.span) else { return }
            let target = parser.head.target
            state = .readingContent(
                Request(
                    path: String(input.span.extracting(target.path.range)),
                    refusal: lacksTLS
                        ? Self.needsTLS : server.refusal(of: parser.head, parser.view(in: input.span)),
                    decoder: BodyDecoder(parser.head.framing)))
            input.consume(length)
            askForContent()
        }
        while case .readingContent(var request) = state {
            let step = try request.decoder.decode(input.span)
            state = .readingContent(request)
            if case .data(let range) = step.action { content.append(input.span.extracting(range)) }
            input.consume(step.consumed)
            switch step.action {
            case .needMore: return
            case .end: return ask(request)
            case .data:
                guard content.count <= AdminSettings.maxContent else { return answer(Self.tooLarge) }
            }
        }
    }

    private static var needsTLS: AdminPage {
        AdminPage(status: .badRequest, text: "This admin listener speaks TLS: ask it with https://.\n")
    }

    private static var tooLarge: AdminPage {
        AdminPage(status: .contentTooLarge, text: "The request is too large.\n")
    }

    /// Tells a client that waits for 100 (Continue) to send its content, or at once that the content is not wanted (RFC
    /// 9110 §10.1.1).
    private func askForContent() {
        // A client that has begun to send its content does not wait for 100.
        guard case .readingContent(let request) = state, parser.head.expectation == .continue,
            !request.decoder.isComplete, input.isEmpty
        else { return }
        if let refusal = request.refusal { return refuse(refusal) }
        if let length = parser.head.framing.announcedLength, length > AdminSettings.maxContent {
            return answer(Self.tooLarge)
        }
        output.appendStatusLine(.continue)
        output.appendLineEnd()
        writable()
    }

    private func refuse(_ refusal: AdminPage) {
        server.refused(refusal)
        answer(refusal)
    }

    private func ask(_ request: Request) {
        state = .waiting
        stopReading()
        // The client now waits for the proxy: a purge may have to walk through the whole store.
        due(within: nil)
        if let refusal = request.refusal { return refuse(refusal) }
        let content = content
        pages.page(for: parser.head.method, request.path, content: String(content.span)) { [weak self] page in
            self?.answer(page)
        }
    }

    private func answer(_ page: AdminPage) {
        switch state {
        case .readingHead, .readingContent: state = .sendingEarly
        case .waiting: state = .sending
        case .shaking, .sending, .sendingEarly, .lingering, .closed: return
        }
        stopReading()
        due(within: AdminServer.requestTimeout)
        output.appendStatusLine(page.status)
        // Tells the program's own commands that coalesced has answered.
        output.append("Server: coalesced\r\nContent-Type: ")
        output.append(page.contentType)
        output.append("\r\n")
        output.appendField("Content-Length", UInt64(page.content.count))
        output.append("Cache-Control: no-store\r\nConnection: close\r\n")
        if let challenge = page.challenge {
            output.append("WWW-Authenticate: ")
            output.append(challenge)
            output.appendLineEnd()
        }
        if let allowed = page.allowed {
            output.append("Allow: ")
            output.append(allowed)
            output.appendLineEnd()
        }
        output.appendLineEnd()
        if parser.head.method != .head { output.append(page.content.span) }
        writable()
    }

    override func writable() {
        if case .shaking(let stream) = state { return shake(stream) }
        switch flush(output) {
        case .blocked: break
        case .done:
            switch state {
            case .sending: end()
            case .sendingEarly: linger()
            // Only a 100 (Continue) was sent.
            case .shaking, .readingHead, .readingContent, .waiting, .lingering, .closed: break
            }
        case .failed: end()
        }
    }

    private func linger() {
        state = .lingering
        disarmWrite()
        input.removeAll()
        try? shutdownWrite()
        due(within: AdminServer.lingerTimeout)
        startReading()
    }
}
