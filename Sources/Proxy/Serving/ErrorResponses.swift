import Bytes
import HTTPSemantics
import Telemetry
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
    ///   - explanation: one sentence; the content is the status and this.
    ///   - provenance: `nil` for what was refused before any look-up: it says nothing of the cache.
    func write(
        _ status: Status, _ explanation: StaticString, provenance: Provenance?, upstream: UpstreamError? = nil,
        persists: Bool, version: HTTPVersion = .http11, date: Int64, isHead: Bool = false, extra: StaticString = "", to buffer: ByteBuffer
    ) -> Delivery.Sources {
        let content = ByteBuffer(capacity: 160)
        content.append(decimal: UInt64(status.code))
        content.append(" ")
        content.append(status.reasonPhrase)
        content.append("\n")
        content.append(explanation)
        content.append("\n")

        buffer.appendStatusLine(status)
        buffer.appendName("Date")
        HTTPDate.append(date, to: buffer)
        buffer.appendLineEnd()
        buffer.append("Content-Type: text/plain; charset=utf-8\r\n")
        buffer.appendField("Content-Length", UInt64(content.count))
        if status == .serviceUnavailable { buffer.appendField("Retry-After", Self.retryAfter) }
        buffer.append(extra)
        if let upstream { proxyStatus?.write(upstream.proxyError, to: buffer) }
        if let provenance {
            forwarding.append(to: buffer, provenance, persists: persists, version: version)
        } else {
            forwarding.appendConnection(to: buffer, persists: persists, version: version)
        }
        buffer.appendLineEnd()
        return .one(isHead ? .none : .complete(CompleteBodyReader(ShortList(one: content.copied()), part: 0..<content.count)))
    }
}

extension UpstreamError {
    /// What a client is told.
    var explanation: StaticString {
        switch failure {
        case .unavailable: "The proxy is out of sockets or ports for the origin; try again in a moment."
        case .resolve: "The origin's name could not be resolved."
        case .connect: "The origin refused the connection or could not be reached."
        case .connectTimeout: "The origin did not accept a connection in time."
        case .send, .closed: "The origin closed the connection before it answered."
        case .headTimeout: "The origin did not answer in time."
        case .head: "The origin's answer is not valid HTTP."
        case .body, .bodyTimeout: "The origin's answer was cut short."
        }
    }
}
