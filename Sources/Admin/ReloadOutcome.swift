import HTTPSemantics

/// The outcome of one reload, for the caller that asked for it.
package struct ReloadOutcome: Sendable {
    /// The result of a reload.
    package enum Kind: Sendable {
        /// The new settings are in use.
        case done
        /// The former settings stay.
        case mistakes
        /// The program does not reload in its present state.
        case notNow
    }

    /// Whether the new settings are in use.
    package let kind: Kind
    /// Facts for the operator, one line each; at least one.
    package let lines: [String]

    package init(_ kind: Kind, _ lines: [String]) {
        self.kind = kind
        self.lines = lines
    }
}

extension AdminPage {
    init(_ outcome: ReloadOutcome) {
        let status: Status =
            switch outcome.kind {
            case .done: .ok
            // The request is well-formed; its content, as it were, is the file (RFC 9110 §15.5.21).
            case .mistakes: Status(422)
            case .notNow: .serviceUnavailable
            }
        self.init(status: status, text: outcome.lines.map { $0 + "\n" }.joined())
    }
}
