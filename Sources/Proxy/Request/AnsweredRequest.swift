import HTTPSemantics
import Routing
import Telemetry

/// A request answered without a transaction, logged once its response is sent: a response made by this proxy
/// (`SyntheticResponse`), or a hit that did not fit into the socket buffer. A class, so that an idle connection holds no room
/// for a head.
final class AnsweredRequest {
    let status: Status
    let verdict: Verdict
    /// The metrics of the upstream that this request is counted under; `nil` for a refusal.
    let upstreamMetrics: UpstreamMetrics?
    /// The request's head, whose ranges refer to `fields`; `nil` if the head could not be parsed.
    let head: RequestHead?
    let fields: HeadBlock?
    /// The identifier that was made for the request; `none` if none was.
    let madeID: RequestID
    /// Bytes of the response's content that stand in the same buffer as the response's head.
    let contentInHead: Int

    init(
        _ status: Status, _ verdict: Verdict, _ upstreamMetrics: UpstreamMetrics?, _ head: RequestHead?,
        _ fields: HeadBlock?, madeID: RequestID = .none, contentInHead: Int = 0
    ) {
        self.madeID = madeID
        self.contentInHead = contentInHead
        self.status = status
        self.verdict = verdict
        self.upstreamMetrics = upstreamMetrics
        self.head = head
        self.fields = fields
    }
}
