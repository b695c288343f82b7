public import Bytes
public import HTTPSemantics

/// The redirect with which a route answers every request.
package struct RedirectSettings: Sendable, Equatable {
    /// The value of `Location`; `nil` only until it has been read.
    package var target: Template?
    /// Permanent, with the method of the request (RFC 9110 §15.4.9): what a redirect to https or to another host means.
    package var status = Status(308)

    package init() {}
}

/// The response with which a route answers every request.
package struct RespondSettings: Sendable, Equatable {
    /// The status; each file states it.
    package var status = Status.ok
    /// The content; `nil`: that of `file`, or the status in words.
    package var body: String?
    /// The file with the content.
    package var file: NamedFile?
    /// The media type of the content; `nil`: plain text for a text, and what its name says for a file.
    package var type: String?

    package init() {}
}

/// The file that replaces the content of responses with one status.
package struct ErrorPageSettings: Sendable, Hashable {
    /// The status of the responses.
    package var status: Status
    /// The file with the content.
    package var file: NamedFile

    /// A page for `status`.
    package init(_ status: Status, _ file: NamedFile) { (self.status, self.file) = (status, file) }
}

/// The answer of a route that needs no origin: a redirect, or a response from the configuration. Nothing is looked up
/// or stored for it. Immutable.
public final class OwnAnswer: Sendable {
    /// The status of the answer.
    public let status: Status
    /// The content of the answer, empty if the status forbids one.
    public let content: OwnContent
    /// The value of `Location`; `nil`: none.
    private let target: Template?

    /// `nil` if the route has an upstream.
    init?(_ route: RouteSettings) {
        guard route.isAnsweredHere else { return nil }
        status = route.redirect?.status ?? route.respond?.status ?? .ok
        target = route.redirect?.target
        let words = status.hasNoContent ? "" : "\(status.code) \(status.reasonPhrase)\n"
        content =
            if let respond = route.respond, let file = respond.file {
                OwnContent(file, type: respond.type)
            } else {
                OwnContent(route.respond?.body ?? words, type: route.respond?.type)
            }
    }

    /// Whether the answer is a redirect.
    public var isRedirect: Bool { target != nil }

    /// Whether no cache may keep the answer, since it is made of the request.
    public var forbidsStoring: Bool { target.map { !$0.isConstant } ?? false }

    /// Whether the answer has the identifier of the request.
    public var usesRequestID: Bool { target?.uses(.requestID) ?? false }

    /// Whether the answer tells the client its address.
    public var namesClient: Bool { target?.uses(.client) ?? false }

    /// The field lines of the answer to one request, besides those about its content. No cache may keep a `Location`
    /// that was made of the request: its key may lack a part of what the `Location` was made of, as the host.
    public func fieldLines(for request: borrowing RequestParts) -> ByteSlice {
        guard let target else { return .empty }
        let lines = ByteBuffer(capacity: 256)
        lines.appendName("Location")
        target.write(request, to: lines)
        lines.appendLineEnd()
        if forbidsStoring { lines.appendField("Cache-Control", "no-store") }
        return lines.copied()
    }
}

extension Status {
    /// Whether a response with this status has no content: those that forbid it, and 205 (RFC 9110 §15.3.6).
    package var hasNoContent: Bool { forbidsContent || code == 205 }
}
