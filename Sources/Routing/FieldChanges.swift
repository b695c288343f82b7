/// The operator's changes to the fields of messages: one map of `request-headers` or `response-headers`.
package struct FieldChanges: Sendable, Equatable {
    /// A field line to write.
    package struct Line: Sendable, Equatable {
        /// As the operator spelled it.
        package var name: String
        package var value: Template

        /// The line of this name and value.
        package init(_ name: String, _ value: Template) { (self.name, self.value) = (name, value) }
    }

    /// The most lines and names in one map. Each is compared with each field of a message.
    package static let most = 64

    /// The lines that take the place of all lines of their names.
    package var set: [Line] = []
    /// The lines that stand beside the received ones.
    package var add: [Line] = []
    /// The names of which no line is sent, in lower case.
    package var remove: [String] = []

    package init() {}
}

/// When a request gets an identifier, in `X-Request-Id`.
package enum RequestIDRule: String, Sendable, CaseIterable {
    /// The client's is forwarded.
    case pass
    /// A request without one gets one.
    case make
}
