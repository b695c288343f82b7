public import Bytes

/// A text of the configuration with variables, such as `https://${host}${target}`: parsed once, and written for each
/// request or response. Only `${` begins a variable; every other `$` is itself. Immutable.
public struct Template: Sendable, Hashable {
    /// A part of a request, or of the response to it. The raw value is the name in the text.
    public enum Variable: String, Sendable, CaseIterable {
        /// The host that the client asked, without the port.
        case host
        /// Path and query as they were sent.
        case target
        case path
        /// The query without its `?`; empty if there is none.
        case query
        /// `http` or `https`.
        case scheme
        /// The client's address, as the access log shows it.
        case client
        case requestID = "request-id"
        /// The status of the response that the client gets.
        case status
        /// The verdict of the access log: `hit`, `miss`, …
        case cache

        /// The variables that a request has before there is a response to it.
        package static let ofRequests = allCases.filter { $0 != .status && $0 != .cache }
    }

    /// A text that is no template.
    package enum Mistake: Error, Equatable {
        /// `${` without its `}`.
        case unclosed
        /// The name is that of no variable that may stand here.
        case unknown(String)
    }

    enum Piece: Sendable, Hashable {
        case text(ByteSlice)
        case variable(Variable)
    }

    let pieces: [Piece]

    /// Parses `text`.
    /// - Parameter allowed: the variables that may occur.
    /// - Throws: `Mistake` if a variable does not end, or is none of these.
    package init(_ text: String, allowing allowed: [Variable] = Variable.allCases) throws(Mistake) {
        var (pieces, rest) = ([Piece](), text[...])
        while let start = rest.firstRange(of: "${") {
            if start.lowerBound > rest.startIndex {
                pieces.append(.text(ByteSlice(String(rest[..<start.lowerBound]))))
            }
            guard let end = rest[start.upperBound...].firstIndex(of: "}") else { throw .unclosed }
            let name = String(rest[start.upperBound..<end])
            guard let variable = Variable(rawValue: name), allowed.contains(variable) else { throw .unknown(name) }
            pieces.append(.variable(variable))
            rest = rest[rest.index(after: end)...]
        }
        if !rest.isEmpty { pieces.append(.text(ByteSlice(String(rest)))) }
        self.pieces = pieces
    }

    /// Whether the text is the same for all requests.
    public var isConstant: Bool {
        pieces.allSatisfy { if case .text = $0 { true } else { false } }
    }

    /// Whether `variable` occurs.
    public func uses(_ variable: Variable) -> Bool { pieces.contains(.variable(variable)) }

    /// The text that this was parsed from.
    package var text: String {
        pieces.map {
            switch $0 {
            case .text(let text): String(text)
            case .variable(let variable): "${\(variable.rawValue)}"
            }
        }
        .joined()
    }

    /// Appends the text with the values of its variables, in which a byte that a field may not have is percent-encoded.
    public func write(_ parts: borrowing RequestParts, to buffer: ByteBuffer) {
        for piece in pieces {
            switch piece {
            case .text(let text): buffer.append(text)
            case .variable(let variable): parts.write(variable, to: buffer)
            }
        }
    }
}
