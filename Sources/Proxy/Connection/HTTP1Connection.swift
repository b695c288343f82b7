import Bytes
import HTTPSemantics
import Libevent

/// HTTP/1.1 on one client's connection: takes requests from its buffer, one after another.
///
/// Requests read in phase `reading` are served in a batch together with those of other clients (`SocketBatch`). A plain
/// hit is answered at once (`HitPath`); anything else becomes a `Transaction`, or this proxy answers it itself. How the
/// responses are sent is in the superclass.
///
/// ```
/// between requests ─first byte→ head ─taken→ (content ─complete, or not needed→) answering ─answered→ between requests
/// ```
///
/// This file has time and the end of the program. The extensions have requests (`Requests`) and their content
/// (`Content`).
final class HTTP1Connection: HTTP1Responses, LaterClient {
    /// The reader of the current request's content, until the content is complete, or the rest of it is not needed.
    var content: ContentReader?

    override var receivesContent: Bool { content != nil }

    override var takesLargePieces: Bool { content != nil && transaction?.content?.takesLargePieces ?? true }

    override func bytesCame() {
        if phase == .serving { readContent() }
        if phase == .reading, let input { serve(input) } else { giveBackContextIfUnused() }
    }

    override func batchIsReady(isShared: Bool) {
        guard phase == .reading, let input else { return }
        serve(input, waits: isShared)
    }

    override func isLate(with waiting: Waiting) {
        switch waiting {
        case .head: timeOut("The request's head took too long.")
        case .content where delivery == nil: timeOut("The request's content took too long.")
        case .content: end()
        case .send: takingIsDue()
        case .request, .response, .tunnel, .linger, .ping: break
        }
    }

    private func timeOut(_ explanation: StaticString) {
        context.notices.timeout(peer)
        answerInstead(SyntheticResponse(.requestTimeout, explanation))
    }

    /// The program ends: the connection takes no request after the current one. A connection without a request waits
    /// only shortly for its first.
    override func drain() {
        keepsAlive = false
        takeArrivedBytes()
        // A partly received head still has `head-timeout` to become complete.
        guard phase == .reading, input?.hasBegunHead != true else { return }
        // A client that has had a response knows that a persistent connection may close at any time, and retries its
        // request on another one (RFC 9112 §9.3.1).
        if requestCount > 0 { end() } else { awaitFirstRequest() }
    }

    override func programEnds() {
        guard transaction == nil, let answered else { return super.programEnds() }
        LaterAnswer(to: answered, for: self).purged(.ending)
    }

    var awaitsAnswer: Bool { phase == .serving && delivery == nil }

    func closesAfterAnswer() { keepsAlive = false }

    func settleAnswer() { keepsAlive = settlePersistence() }

    func answerItself(_ answer: SyntheticResponse, to head: RequestHead?, _ fields: HeadBlock?) {
        answerItself(answer, to: head, fields, method: nil)
    }

    override func resumeContent() {
        guard phase == .serving, content != nil else { return }
        startReading()
        // The buffer may have been returned when it was empty; the decoder may still have the end of the content to
        // report.
        _ = borrowContext()
        readContent()
        giveBackContextIfUnused()
    }
}
