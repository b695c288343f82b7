import HTTPSemantics
import Libevent
import Routing
import Telemetry

/// Challenges of certificate authorities (`Challenge`), which are answered here and never forwarded.
extension HTTP1Connection {
    /// Answers a challenge, if the request is one. Only in the clear: a handshake needs the certificate that the
    /// challenge is for.
    /// - Returns: whether it is one.
    func answerChallenge(_ head: RequestHead, _ fields: HeadBlock) -> Bool {
        guard let folder = context.settings.tls.acmeChallenges, !isSecure, head.framing == .none,
            let control = context.shared.control, let challenge = Challenge(head, fields.view)
        else { return false }
        // What the log has if the client leaves. Its place is taken by the answer.
        let waiting = AnsweredRequest(.ok, .synthetic, nil, head, fields)
        answered = waiting
        challenge.answer(from: folder, control, to: loop) { [weak self] answer in
            // The client may have left.
            guard let self, phase == .serving, answered === waiting, delivery == nil else { return }
            answerItself(answer, to: head, fields)
        }
        return true
    }
}
