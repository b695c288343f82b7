import HTTPSemantics
import Libevent
import Routing
import Telemetry

/// A request that another loop of this program answers: a `PURGE` (`PurgeMethod`), or the challenge of a certificate
/// authority (`Challenge`). Neither is forwarded, and the requests behind it wait.
///
/// ```
/// taken ─not allowed, not understood→ answered
///   └─given to the control loop→ waiting ─its answer→ answered
///                                  ├─the program ends→ answered (a purge)
///                                  └─the client leaves→ over; a purge goes on
/// ```
struct LaterAnswer {
    private weak var connection: HTTP1Connection?
    /// What the log has if the client leaves. Its place is taken by the answer.
    private let request: AnsweredRequest

    /// The answer that `connection` waits for.
    init(to request: AnsweredRequest, on connection: HTTP1Connection) {
        self.connection = connection
        self.request = request
    }

    private init(_ head: RequestHead, _ fields: HeadBlock, on connection: HTTP1Connection) {
        self.init(to: AnsweredRequest(.ok, .synthetic, nil, head, fields), on: connection)
        connection.answered = request
    }

    /// Answers a request that is one of these.
    /// - Returns: whether it is one.
    static func begin(_ head: RequestHead, _ fields: HeadBlock, on connection: HTTP1Connection) -> Bool {
        if PurgeMethod.isMethod(of: head, fields.view) {
            purge(head, fields, on: connection)
            return true
        }
        let context = connection.context
        // Only in the clear: a handshake needs the certificate that the challenge is for.
        guard let folder = context.settings.tls.acmeChallenges, !connection.isSecure, head.framing == .none,
            let control = context.shared.control, let challenge = Challenge(head, fields.view)
        else { return false }
        let answer = LaterAnswer(head, fields, on: connection)
        challenge.answer(from: folder, control, to: context.loop) { response in
            answer.waiting?.answerItself(response, to: head, fields)
        }
        return true
    }

    private static func purge(_ head: RequestHead, _ fields: HeadBlock, on connection: HTTP1Connection) {
        switch head.framing {
        case .none, .length(0): break
        // The content is not read, so the connection cannot persist.
        case .length, .chunked, .untilClose: connection.keepsAlive = false
        }
        let (context, peer, isTrustedProxy) = (connection.context, connection.peer, connection.isTrustedProxy)
        let access = context.loopSettings.purgeAccess
        if let refusal = access.refusal(of: peer, isProxied: isTrustedProxy, fields.view) {
            context.metrics.add(.deniedRequests)
            context.notices.refused(refusal, from: peer, isTrustedProxy: isTrustedProxy, context.loopSettings, fields)
            return connection.answerItself(
                SyntheticResponse(.forbidden, refusal.explanation), to: head, fields)
        }
        do throws(SyntheticResponse) {
            let purge = try PurgeMethod(head, fields.view)
            let answer = LaterAnswer(head, fields, on: connection)
            context.shared.purgeMail.ask(purge.request, purge.summary, from: context.loop) { answer.purged($0) }
        } catch {
            connection.answerItself(error, to: head, fields)
        }
    }

    func purged(_ answer: PurgeAnswer) {
        guard let connection = waiting else { return }
        connection.keepsAlive = connection.settlePersistence()
        // The client's next connection leads to that program.
        if case .elsewhere = answer { connection.keepsAlive = false }
        connection.answerItself(SyntheticResponse(answer), to: request.head, request.fields)
    }

    /// The connection, unless the client has left, or has its answer.
    private var waiting: HTTP1Connection? {
        guard let connection, connection.phase == .serving, connection.answered === request,
            connection.delivery == nil
        else { return nil }
        return connection
    }
}
