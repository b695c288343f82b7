package import Bytes

/// A reply of the engine, as far as the tier reads replies: whatever the protocol calls a text is one here.
package indirect enum TierValue: Hashable, Sendable {
    case none
    case integer(Int64)
    case text(ByteSlice)
    case list([TierValue])
    /// The engine refused. The text begins with a word in capital letters, such as `OOM`.
    case error(ByteSlice)
}

/// Why a reply of the engine says nothing. It is never an answer of another kind, so that a caller does without the tier.
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

    func list() throws(TierReplyError) -> [TierValue] {
        switch self {
        case .list(let values): return values
        case .error(let text): throw .refused(text)
        case .none, .text, .integer: throw .malformed
        }
    }
}
