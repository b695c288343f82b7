import HTTPSemantics
import Telemetry

/// A request answered without a transaction and logged once the answer is out: an answer of our own, or a hit that
/// the client takes bit by bit. A class, so that a waiting connection does not hold room for a head.
final class AnsweredRequest {
    let status: Status
    let verdict: Verdict
    /// The metrics of the upstream that the request is counted with; `nil` for a refusal.
    let upstreamMetrics: UpstreamMetrics?
    /// The head, to be read with `fields`; `nil` where it could not be read.
    let head: RequestHead?
    let fields: HeadBlock?
    /// Bytes of the content that share one piece of memory with the answer's head.
    let contentInHead: Int

    init(
        _ status: Status, _ verdict: Verdict, _ upstreamMetrics: UpstreamMetrics?, _ head: RequestHead?,
        _ fields: HeadBlock?, contentInHead: Int = 0
    ) {
        self.contentInHead = contentInHead
        self.status = status
        self.verdict = verdict
        self.upstreamMetrics = upstreamMetrics
        self.head = head
        self.fields = fields
    }
}
