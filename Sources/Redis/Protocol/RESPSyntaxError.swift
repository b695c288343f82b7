/// The reason why bytes are not RESP3, and where. The rest of the connection's bytes mean nothing then.
package struct RESPSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The broken rule.
    package enum Reason: Hashable, Sendable {
        /// No value begins with this byte.
        case unknownType(UInt8)
        /// The length is not known beforehand (`$?`, `*?`), which no engine does.
        case streamed
        case lineTooLong(most: Int)
        /// A line does not end with CR LF, or has a CR inside.
        case lineBreakInvalid
        /// The bytes behind a text of known length are not CR LF.
        case textEndMissing
        case lengthInvalid
        case numberInvalid
        case booleanInvalid
        case nullInvalid
        /// A verbatim text does not begin with three letters and a colon.
        case formatMissing
        case tooManyBytes(most: Int)
        case tooManyElements(most: Int)
        case tooDeep(most: Int)
        /// A push message stands inside of another value.
        case pushInside
    }

    /// The broken rule.
    package let reason: Reason
    /// The number of bytes that the connection received before the wrong one.
    package let position: Int

    /// One sentence for the log.
    package var description: String { "byte \(position) of what the engine sent: \(reason)" }

    init(_ reason: Reason, at position: Int) {
        self.reason = reason
        self.position = position
    }
}

extension RESPSyntaxError.Reason: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownType(let byte): "no value of RESP3 begins with \(Self.name(of: byte))"
        case .streamed: "a value of unknown length"
        case .lineTooLong(let most): "a line of more than \(most) bytes"
        case .lineBreakInvalid: "a line must end with CR LF, and have no other CR"
        case .textEndMissing: "a text must be followed by CR LF"
        case .lengthInvalid: "a length must be a number"
        case .numberInvalid: "not a number of its kind"
        case .booleanInvalid: "a boolean must be t or f"
        case .nullInvalid: "a null must be empty"
        case .formatMissing: "a verbatim text must begin with three bytes and a colon"
        case .tooManyBytes(let most): "a value with more than \(most) bytes of text"
        case .tooManyElements(let most): "a value with more than \(most) values inside"
        case .tooDeep(let most): "more than \(most) values inside of each other"
        case .pushInside: "a push message inside of a value"
        }
    }

    private static func name(of byte: UInt8) -> String {
        byte > 0x20 && byte < 0x7f ? "'\(Unicode.Scalar(byte))'" : "byte \(byte)"
    }
}
