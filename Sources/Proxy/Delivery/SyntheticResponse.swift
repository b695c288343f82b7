import HTTPSemantics
import Telemetry
import Upstream

/// A response made by the proxy itself rather than by an origin: a status, and its reason in plain text. Code that
/// refuses a request throws it.
struct SyntheticResponse: Error {
    let status: Status
    /// One sentence.
    let explanation: StaticString
    /// Complete field lines that belong to the status.
    let extraFields: StaticString

    init(_ status: Status, _ explanation: StaticString, extraFields: StaticString = "") {
        self.status = status
        self.explanation = explanation
        self.extraFields = extraFields
    }

    init(_ error: MessageSyntaxError) { self.init(error.status, error.explanation) }

    init(_ error: UpstreamError) { self.init(error.status, error.explanation) }

    static let overloaded = SyntheticResponse(.serviceUnavailable, "The proxy is overloaded; try again in a moment.")
    static let contentTooLarge = SyntheticResponse(.contentTooLarge, "The request's content is too large.")
}

extension UpstreamError {
    /// The explanation for the client.
    fileprivate var explanation: StaticString {
        switch failure {
        case .unavailable: "The proxy is out of sockets or ports for the origin; try again in a moment."
        case .resolve: "The origin's name could not be resolved."
        case .connect: "The origin refused the connection or could not be reached."
        case .connectTimeout: "The origin did not accept a connection in time."
        case .send, .closed: "The origin closed the connection before it answered."
        case .sendTimeout: "The origin did not take the request in time."
        case .headTimeout: "The origin did not answer in time."
        case .head: "The origin's answer is not valid HTTP."
        case .headTooLarge: "The origin's answer has too large a head."
        case .body, .bodyTimeout: "The origin's answer was cut short."
        }
    }
}
