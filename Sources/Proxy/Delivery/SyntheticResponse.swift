import Bytes
import HTTPSemantics
import Libevent
import Routing
import Telemetry
import Upstream

/// A response made by the proxy itself rather than by an origin: a status, and its reason in plain text; or the route's
/// own answer. Code that refuses a request, or has its answer before any look-up, throws it.
struct SyntheticResponse: Error {
    let status: Status
    /// One sentence; empty in the route's own answer.
    let explanation: StaticString
    /// Complete field lines that belong to the status.
    let extraFields: StaticString
    /// How the request is counted if nothing was looked up for it.
    let verdict: Verdict
    /// The request's route, if that is known. Its error page replaces the content.
    private(set) var route: Route?
    /// A text in place of `explanation`; empty for most responses.
    private var sentence = ByteSlice.empty
    /// Further field lines; empty for most responses.
    private(set) var furtherLines = ByteSlice.empty
    /// The content of the route's own answer.
    private var ownContent: OwnContent?
    /// The identifier that was made for the request; `none` if none was.
    private(set) var madeID = RequestID.none
    /// The `Retry-After` of a 503, in seconds.
    fileprivate static let retryAfter: UInt64 = 1

    init(
        _ status: Status, _ explanation: StaticString, extraFields: StaticString = "", on route: Route? = nil,
        as verdict: Verdict? = nil
    ) {
        self.status = status
        self.explanation = explanation
        self.extraFields = extraFields
        self.route = route
        self.verdict = verdict ?? (route == nil ? .refused : .synthetic)
    }

    /// The route's own answer.
    init(_ answer: OwnAnswer, _ fieldLines: ByteSlice, on route: Route, madeID: RequestID) {
        self.init(answer.status, "", on: route)
        self.madeID = madeID
        furtherLines = fieldLines
        ownContent = answer.content
    }

    /// The response to a `PURGE` that was done.
    /// - Parameter text: one sentence.
    init(purged text: String) {
        self.init(.ok, "", as: .synthetic)
        sentence = ByteSlice(text)
    }

    /// A response with this content.
    init(content: OwnContent) {
        self.init(.ok, "", as: .synthetic)
        ownContent = content
    }

    /// The response to a request that its route's rules refuse.
    init(_ refusal: AccessRules.Refusal, by rules: AccessRules, on route: Route) {
        switch refusal {
        case .denied: self.init(.forbidden, "This client may not use this resource.")
        case .limited(let wait):
            self.init(Status(429), "This client sends too many requests; try again later.")
            furtherLines = rules.lines(ofRefusalFor: wait)
        }
        self.route = route
    }

    init(_ error: MessageSyntaxError) { self.init(error.status, error.explanation) }

    init(_ error: UpstreamError) { self.init(error.status, error.explanation) }

    static let overloaded = SyntheticResponse(.serviceUnavailable, "The proxy is overloaded; try again in a moment.")
    static let contentTooLarge = SyntheticResponse(.contentTooLarge, "The request's content is too large.")

    /// This response to a request on `route`; without a route it stays as it is.
    func on(_ route: Route?) -> SyntheticResponse {
        var response = self
        response.route = route ?? self.route
        return response
    }

    /// Whether the route itself is the answer: then nothing is added to it.
    fileprivate var isOwnAnswer: Bool { ownContent != nil }

    /// The content of the response.
    fileprivate func content(reporting error: UpstreamError?) -> OwnContent {
        route?.rules?.errorPage(for: status) ?? ownContent ?? OwnContent(plainText: text(reporting: error))
    }

    private func text(reporting error: UpstreamError?) -> ByteSlice {
        let content = ByteBuffer(capacity: 160)
        content.append(decimal: UInt64(status.code))
        content.append(" ")
        content.append(status.reasonPhrase)
        content.append("\n")
        content.append(explanation)
        content.append(sentence)
        content.append("\n")
        if let details = error?.reason?.explanation {
            content.append(details)
            content.append("\n")
        }
        return content.copied()
    }
}

extension LoopContext {
    /// Writes the head of a synthetic response; returns the content that goes with it.
    /// - Parameters:
    ///   - method: the request's method, as far as it could be read: a HEAD gets no content.
    ///   - provenance: `nil` for a request that was never looked up: its response has no `Cache-Status`.
    ///   - upstream: the failure, if the answer reports one.
    func write(
        _ answer: SyntheticResponse, to method: Method?, _ version: HTTPVersion, _ provenance: Provenance? = nil,
        upstream: UpstreamError? = nil, persists: Bool, into buffer: ByteBuffer
    ) -> Delivery.Sources {
        let (status, content, settings) = (answer.status, answer.content(reporting: upstream), loopSettings)
        buffer.appendStatusLine(status)
        buffer.appendName("Date")
        HTTPDate.append(loop.wallClockSeconds, to: buffer)
        buffer.appendLineEnd()
        if !content.bytes.isEmpty { buffer.append(content.typeLine) }
        if !status.forbidsContent { buffer.appendField("Content-Length", UInt64(content.bytes.count)) }
        if status == .serviceUnavailable, !answer.isOwnAnswer {
            buffer.appendField("Retry-After", upstream?.retryAfter ?? SyntheticResponse.retryAfter)
        }
        buffer.append(answer.extraFields)
        buffer.append(answer.furtherLines)
        if let upstream {
            settings.proxyStatus?.write(upstream.proxyError, details: upstream.reason?.explanation, to: buffer)
        }
        if let provenance {
            settings.responseForwarding.append(to: buffer, provenance, persists: persists, version: version)
        } else {
            settings.responseForwarding.appendConnection(to: buffer, persists: persists, version: version)
        }
        buffer.appendLineEnd()
        return method == .head ? .one(.none) : .one(.all(of: content.bytes))
    }
}

extension UpstreamError {
    /// The explanation for the client.
    fileprivate var explanation: StaticString {
        switch failure {
        case .unavailable where reason == .noServer: "The origin cannot be used at the moment; try again later."
        case .unavailable: "The proxy is out of sockets or ports for the origin; try again in a moment."
        case .resolve: "The origin's name could not be resolved."
        case .connect: "The origin refused the connection or could not be reached."
        case .connectTimeout: "The origin did not accept a connection in time."
        case .handshake: "No encrypted connection to the origin could be established."
        case .send, .closed: "The origin closed the connection before it answered."
        case .sendTimeout: "The origin did not take the request in time."
        case .headTimeout: "The origin did not answer in time."
        case .head: "The origin's answer is not valid HTTP."
        case .headTooLarge: "The origin's answer has too large a head."
        case .body, .bodyTimeout: "The origin's answer was cut short."
        }
    }
}
