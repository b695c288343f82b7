import Bytes
import Libevent

/// One connection to the demo's origin. It answers one request after another, and sends each response in pieces over
/// time. On the origin's loop.
final class DemoConnection: Socket {
    private unowned let site: DemoSite
    private let received = ByteBuffer(capacity: 4096)
    private let unsent = ByteBuffer(capacity: 4096)
    private var isAnswering = false

    init(adopting descriptor: consuming Descriptor, on loop: EventLoop, site: DemoSite) {
        self.site = site
        super.init(adopting: descriptor, on: loop)
    }

    override func readable() {
        switch read(into: received) {
        case .bytes: answerNext()
        case .wouldBlock: break
        case .endOfStream, .failed: end()
        }
    }

    private func end() {
        close()
        site.ended(self)
    }

    /// Answers the next request, if it is complete and the response to the last one has been sent.
    private func answerNext() {
        guard !isAnswering, !isClosed else { return }
        let received = received
        let text = String(received.span)
        guard let end = text.firstRange(of: "\r\n\r\n") else { return }
        received.consume(text[..<end.upperBound].utf8.count)
        guard let request = DemoRequest(String(text[..<end.lowerBound])),
            request.method == "GET" || request.method == "HEAD"
        else {
            send(
                "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return self.end()
        }
        isAnswering = true
        let answer = site.answer(request)
        wait(answer.delay) { connection in connection.begin(answer, withBody: request.method == "GET") }
    }

    /// Sends the head. A response without delays has a Content-Length; one with delays is chunked (RFC 9112 §7.1).
    private func begin(_ answer: DemoPage.Answer, withBody: Bool) {
        let isStreamed = answer.pieces.contains { $0.delay > 0 }
        let hasContent = !answer.status.hasPrefix("304")
        var fields = answer.fields
        if isStreamed {
            fields.append("Transfer-Encoding: chunked")
        } else if hasContent {
            fields.append("Content-Length: \(answer.pieces.reduce(0) { $0 + $1.text.utf8.count })")
        }
        send("HTTP/1.1 \(answer.status)\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n")
        proceed(withBody && hasContent ? answer.pieces[...] : [], inChunks: isStreamed && withBody)
    }

    private func proceed(_ pieces: ArraySlice<DemoPage.Answer.Piece>, inChunks: Bool) {
        guard let piece = pieces.first else {
            if inChunks { send("0\r\n\r\n") }
            isAnswering = false
            return answerNext()
        }
        wait(piece.delay) { connection in
            connection.send(inChunks ? "\(String(piece.text.utf8.count, radix: 16))\r\n\(piece.text)\r\n" : piece.text)
            connection.proceed(pieces.dropFirst(), inChunks: inChunks)
        }
    }

    private func wait(_ delay: Int64, then next: @escaping (DemoConnection) -> Void) {
        guard delay > 0 else { return next(self) }
        loop.schedule(after: delay) { [weak self] in
            if let self, !isClosed { next(self) }
        }
    }

    private func send(_ text: String) {
        unsent.append(string: text)
        writable()
    }

    override func writable() {
        if !isClosed, case .failed = flush(unsent) { end() }
    }
}
