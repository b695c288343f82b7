package import Bytes

/// A reply of the engine, as far as the tier reads replies: simple, bulk and verbatim texts are all texts here.
package enum TierValue: Hashable, Sendable {
    case none
    case integer(Int64)
    case text(ByteSlice)
    case list([TierValue])
    /// The engine refused. The text begins with a word in capital letters, such as `OOM`.
    case error(ByteSlice)
}

/// The reason why a reply is no answer. The caller then does without the tier.
package enum TierReplyError: Error, Hashable {
    /// The engine refused, with this text.
    case refused(ByteSlice)
    /// The reply has not the form that its command has.
    case malformed
}

extension TierValue {
    func text() throws(TierReplyError) -> ByteSlice {
        switch self {
        case .text(let text): return text
        case .error(let text): throw .refused(text)
        case .none, .integer, .list: throw .malformed
        }
    }

    func integer() throws(TierReplyError) -> Int64 {
        switch self {
        case .integer(let number): return number
        case .error(let text): throw .refused(text)
        case .none, .text, .list: throw .malformed
        }
    }

    /// A time or a length.
    func amount() throws(TierReplyError) -> Int64 {
        let number = try integer()
        guard 0...TierNumbers.greatest ~= number else { throw .malformed }
        return number
    }

    func list() throws(TierReplyError) -> [TierValue] {
        switch self {
        case .list(let values): return values
        case .error(let text): throw .refused(text)
        case .none, .text, .integer: throw .malformed
        }
    }
}
