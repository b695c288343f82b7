import HTTPSemantics
import Libevent
import Routing
import Telemetry

/// `PURGE` (`PurgeMethod`), which is answered here and never forwarded. The requests behind it wait for its answer.
///
/// ```
/// taken ─not allowed, not understood→ answered
///   └─given to the control loop→ purging ─its answer→ answered
///                                  ├─the program ends→ answered
///                                  └─the client leaves→ over; the purge goes on
/// ```
extension HTTP1Connection {
    func purge(_ head: RequestHead, _ fields: HeadBlock) {
        switch head.framing {
        case .none, .length(0): break
        // The content is not read, so the connection cannot persist.
        case .length, .chunked, .untilClose: keepsAlive = false
        }
        let access = context.loopSettings.purgeAccess
        if let refusal = access.refusal(of: peer, isProxied: isTrustedProxy, fields.view) {
            context.metrics.add(.deniedRequests)
            context.notices.refused(refusal, from: peer, isTrustedProxy: isTrustedProxy, context.loopSettings, fields)
            return answerItself(SyntheticResponse(.forbidden, refusal.explanation), to: head, fields)
        }
        do throws(SyntheticResponse) {
            let purge = try PurgeMethod(head, fields.view)
            // What the log has if the client leaves. Its place is taken by the answer.
            let waiting = AnsweredRequest(.ok, .synthetic, nil, head, fields)
            answered = waiting
            context.shared.purgeMail.ask(purge.request, purge.summary, from: loop) { [weak self] answer in
                self?.purged(waiting, answer)
            }
        } catch {
            answerItself(error, to: head, fields)
        }
    }

    func purged(_ waiting: AnsweredRequest, _ answer: PurgeAnswer) {
        // The client may have left.
        guard phase == .serving, answered === waiting, delivery == nil else { return }
        keepsAlive = settlePersistence()
        let response: SyntheticResponse
        switch answer {
        case .done(let text): response = SyntheticResponse(purged: text)
        case .elsewhere:
            // The client's next connection leads to that program.
            keepsAlive = false
            response = SyntheticResponse(
                .serviceUnavailable, "Another program is taking the place of this one: send the purge again.")
        case .ending: response = SyntheticResponse(.serviceUnavailable, "The program is ending.")
        }
        answerItself(response, to: waiting.head, waiting.fields)
    }
}
