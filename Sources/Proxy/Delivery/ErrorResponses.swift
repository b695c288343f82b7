import Bytes
import HTTPSemantics
import Routing
import Upstream

/// Writes the responses that the proxy itself makes: plain text that states the problem.
struct ErrorResponses: Sendable {
    private let forwarding: ResponseForwarding
    /// `nil`: off.
    private let proxyStatus: ProxyStatusWriter?
    /// The `Retry-After` of a 503, in seconds.
    static let retryAfter: UInt64 = 1

    init(forwarding: ResponseForwarding, proxyStatus: ProxyStatusWriter?) {
        self.forwarding = forwarding
        self.proxyStatus = proxyStatus
    }

    /// Writes the head; returns the content that goes with it.
    /// - Parameters:
    ///   - method: the request's method, as far as it could be read: a HEAD gets no content.
    ///   - provenance: `nil` for a request that was never looked up: its response has no `Cache-Status`.
    ///   - upstream: the failure, if the answer reports one.
    func write(
        _ answer: SyntheticResponse, to method: Method?, _ version: HTTPVersion, _ provenance: Provenance?,
        upstream: UpstreamError?, persists: Bool, date: Int64, into buffer: ByteBuffer
    ) -> Delivery.Sources {
        let status = answer.status
        let content = ByteBuffer(capacity: 160)
        content.append(decimal: UInt64(status.code))
        content.append(" ")
        content.append(status.reasonPhrase)
        content.append("\n")
        content.append(answer.explanation)
        content.append("\n")
        if let details = upstream?.reason?.explanation {
            content.append(details)
            content.append("\n")
        }

        buffer.appendStatusLine(status)
        buffer.appendName("Date")
        HTTPDate.append(date, to: buffer)
        buffer.appendLineEnd()
        buffer.append("Content-Type: text/plain; charset=utf-8\r\n")
        buffer.appendField("Content-Length", UInt64(content.count))
        if status == .serviceUnavailable { buffer.appendField("Retry-After", Self.retryAfter) }
        buffer.append(answer.extraFields)
        if let upstream {
            proxyStatus?.write(upstream.proxyError, details: upstream.reason?.explanation, to: buffer)
        }
        if let provenance {
            forwarding.append(to: buffer, provenance, persists: persists, version: version)
        } else {
            forwarding.appendConnection(to: buffer, persists: persists, version: version)
        }
        buffer.appendLineEnd()
        return .one(
            method == .head
                ? .none : .complete(CompleteBodyReader(ShortList(one: content.copied()), part: 0..<content.count)))
    }
}

extension LoopSettings {
    var errors: ErrorResponses { ErrorResponses(forwarding: responseForwarding, proxyStatus: proxyStatus) }
}
