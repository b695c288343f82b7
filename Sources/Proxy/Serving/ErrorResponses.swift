import Bytes
import HTTPSemantics
import Upstream

/// Writes the responses the proxy makes itself: plain text that says what was wrong.
struct ErrorResponses: Sendable {
    private let forwarding: ResponseForwarding
    /// `nil`: off.
    private let proxyStatus: ProxyStatusWriter?
    /// Seconds after which a client that was turned away should try again.
    static let retryAfter: UInt64 = 1

    init(forwarding: ResponseForwarding, proxyStatus: ProxyStatusWriter?) {
        self.forwarding = forwarding
        self.proxyStatus = proxyStatus
    }

    /// Writes the head; gives the content that goes with it.
    /// - Parameters:
    ///   - method: of what is answered, as far as it could be read: to HEAD there is no content.
    ///   - provenance: `nil` for what never came to a look-up: it says nothing of the cache.
    ///   - upstream: what failed, if the answer stands for that.
    func write(
        _ answer: OwnAnswer, to method: Method?, _ version: HTTPVersion, _ provenance: Provenance?,
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
