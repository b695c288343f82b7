import HTTPSemantics
import Libevent
import Routing
import Telemetry

/// The client of a `LaterAnswer`, on its loop.
protocol LaterClient: AnyObject {
    var context: LoopContext { get }
    var peer: SocketAddress { get }
    var isTrustedProxy: Bool { get }
    var isSecure: Bool { get }
    /// The request that waits for its answer, or has it.
    var answered: AnsweredRequest? { get set }
    /// Whether the answer has not begun, and can.
    var awaitsAnswer: Bool { get }
    /// The client gets no answer on this connection but this one.
    func closesAfterAnswer()
    /// Decides whether the connection outlives the answer, which begins now.
    func settleAnswer()
    func answerItself(_ answer: SyntheticResponse, to head: RequestHead?, _ fields: HeadBlock?)
}

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
    private weak var client: (any LaterClient)?
    /// What the log has if the client leaves. Its place is taken by the answer.
    private let request: AnsweredRequest

    /// The answer that `client` waits for.
    init(to request: AnsweredRequest, for client: any LaterClient) {
        self.client = client
        self.request = request
    }

    private init(_ head: RequestHead, _ fields: HeadBlock, for client: any LaterClient) {
        self.init(to: AnsweredRequest(.ok, .synthetic, nil, head, fields), for: client)
        client.answered = request
    }

    /// Answers a request that is one of these.
    /// - Returns: whether it is one.
    static func begin(_ head: RequestHead, _ fields: HeadBlock, for client: any LaterClient) -> Bool {
        if PurgeMethod.isMethod(of: head, fields.view) {
            purge(head, fields, for: client)
            return true
        }
        let context = client.context
        // Only in the clear: a handshake needs the certificate that the challenge is for.
        guard let folder = context.settings.tls.acmeChallenges, !client.isSecure, head.framing == .none,
            let control = context.shared.control, let challenge = Challenge(head, fields.view)
        else { return false }
        let answer = LaterAnswer(head, fields, for: client)
        challenge.answer(from: folder, control, to: context.loop) { response in
            answer.waiting?.answerItself(response, to: head, fields)
        }
        return true
    }

    private static func purge(_ head: RequestHead, _ fields: HeadBlock, for client: any LaterClient) {
        switch head.framing {
        case .none, .length(0): break
        // The content is not read, so the connection cannot persist.
        case .length, .chunked, .untilClose: client.closesAfterAnswer()
        }
        let (context, peer, isTrustedProxy) = (client.context, client.peer, client.isTrustedProxy)
        let access = context.loopSettings.purgeAccess
        if let refusal = access.refusal(of: peer, isProxied: isTrustedProxy, fields.view) {
            context.metrics.add(.deniedRequests)
            context.notices.refused(refusal, from: peer, isTrustedProxy: isTrustedProxy, context.loopSettings, fields)
            return client.answerItself(
                SyntheticResponse(.forbidden, refusal.explanation), to: head, fields)
        }
        do throws(SyntheticResponse) {
            let purge = try PurgeMethod(head, fields.view)
            let answer = LaterAnswer(head, fields, for: client)
            context.shared.purgeMail.ask(purge.request, purge.summary, from: context.loop) { answer.purged($0) }
        } catch {
            client.answerItself(error, to: head, fields)
        }
    }

    func purged(_ answer: PurgeAnswer) {
        guard let client = waiting else { return }
        client.settleAnswer()
        // The client's next connection leads to that program.
        if case .elsewhere = answer { client.closesAfterAnswer() }
        client.answerItself(SyntheticResponse(answer), to: request.head, request.fields)
    }

    /// The client, unless it has left, or has its answer.
    private var waiting: (any LaterClient)? {
        guard let client, client.awaitsAnswer, client.answered === request else { return nil }
        return client
    }
}
