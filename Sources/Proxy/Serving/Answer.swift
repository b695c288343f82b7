import Bytes
import HTTPSemantics
import Storage
import Telemetry

/// What one client gets of a response: its status, which part of the body, and with which framing. Pure.
struct Answer {
    private enum Content {
        /// The head only.
        case none
        case whole
    }

    let status: Status
    private let content: Content
    /// The length of the content that is sent or, to HEAD, would be; `nil` when it is not known yet.
    private let length: Int?
    private let response: StoredResponse
    private let fromStore: Bool

    /// - Parameters:
    ///   - length: the body's length as far as it is known.
    ///   - isOwn: the response was made for this very request, preconditions and all.
    init(_ request: ClientRequest, _ response: StoredResponse, length: Int?, isOwn: Bool) {
        self.response = response
        fromStore = !isOwn
        let stored = response.facts.status
        let (asked, own) = (request.fields, response.head)
        if !isOwn, ClientConditions.evaluate(asked.view, stored: own.view, facts: response.facts) == .notModified {
            status = .notModified
            content = .none
            self.length = nil
            return
        }
        status = stored
        content = request.method == .head || stored.forbidsContent ? .none : .whole
        self.length = stored.forbidsContent ? nil : length
    }

    func source(of response: StoredResponse) -> Delivery.Source {
        switch content {
        case .none:
            return .none
        case .whole:
            if let pieces = response.body.completePieces, let length = response.body.completeLength {
                return .complete(CompleteBodyReader(pieces, part: 0..<length))
            }
            // The beginning is gone only when the body was cut to a window before this reader came, which closes the fetch to it.
            guard let cursor = response.body.attach() else { return .lost }
            return .arriving(response.body, cursor)
        }
    }

    func framing(for version: HTTPVersion) -> Delivery.Framing {
        if length != nil || content == .none { return .sized }
        return version == .http11 ? .chunked : .untilClose
    }

    /// Writes status line, fields and the empty line.
    func writeHead(
        to buffer: ByteBuffer, provenance: Provenance, at now: Moment, persists: Bool, version: HTTPVersion,
        forwarding: ResponseForwarding
    ) {
        buffer.appendStatusLine(status)
        let head = response.head
        let fields = head.view
        if status == .notModified, response.facts.status != .notModified {
            buffer.appendFields(fields, connection: ConnectionOptions(), dropping: .omittedFromNotModified(fields))
        } else {
            buffer.append(head.bytes)
        }
        let framing = framing(for: version)
        switch framing {
        case .sized:
            if let length { buffer.appendField("Content-Length", UInt64(length)) }
        case .chunked:
            buffer.appendFraming(.chunked)
        case .untilClose:
            break
        }
        if provenance.forwarded == nil || provenance.verdict == .revalidated || response.facts.age(at: response.facts.received) > 0 {
            buffer.appendField("Age", UInt64(response.facts.age(at: now)))
        }
        forwarding.append(to: buffer, provenance, persists: persists && framing != .untilClose, version: version)
        buffer.appendLineEnd()
    }
}

/// What we add to every response (RFC 9110 §7.6.3, RFC 9211). Immutable settings.
struct ResponseForwarding: Sendable {
    /// `Via: 1.1 name` with its CRLF; empty for none. The version is the one we speak to origins.
    let via: ByteSlice
    /// `nil` where none is wanted.
    let cacheStatus: CacheStatusWriter?

    func append(to buffer: ByteBuffer, _ provenance: Provenance, persists: Bool, version: HTTPVersion) {
        buffer.append(via)
        if let cacheStatus, let status = provenance.cacheStatus { cacheStatus.write(status, detail: provenance.detail, to: buffer) }
        appendConnection(to: buffer, persists: persists, version: version)
    }

    /// Says what the version does not imply (RFC 9112 §9.3).
    func appendConnection(to buffer: ByteBuffer, persists: Bool, version: HTTPVersion) {
        switch version {
        case .http11: if !persists { buffer.append("Connection: close\r\n") }
        case .http10: if persists { buffer.append("Connection: keep-alive\r\n") }
        }
    }
}
