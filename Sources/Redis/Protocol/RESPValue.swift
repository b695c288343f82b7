package import Bytes

/// One value that the engine sent, in RESP3, the protocol of Redis and Valkey since version 6.
///
/// Source: https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md. Texts are bytes, since the
/// engine makes no promise about them.
package enum RESPValue: Hashable, Sendable {
    /// A short text without line breaks, such as `OK`.
    case simple(ByteSlice)
    /// The engine refused. The text begins with a word in capital letters, such as `ERR`.
    case error(ByteSlice)
    /// A whole number.
    case integer(Int64)
    /// Any bytes.
    case bulk(ByteSlice)
    /// There is no value.
    case null
    /// Yes or no.
    case boolean(Bool)
    /// The digits of a number with a fraction, or `inf`, `-inf` or `nan`.
    case double(ByteSlice)
    /// The digits of a whole number of any length.
    case bigNumber(ByteSlice)
    /// A text for people, without the three letters that name its format.
    case verbatim(ByteSlice)
    /// Values in their order.
    case array([RESPValue])
    /// Values without an order.
    case set([RESPValue])
    /// Each key is followed by its value.
    case map([RESPValue])
    /// A message that answers no command. The first value is the kind of the message.
    case push([RESPValue])
}

extension RESPValue {
    /// The bytes of a text of any kind; `nil` for errors, numbers and lists.
    package var text: ByteSlice? {
        switch self {
        case .simple(let text), .bulk(let text), .verbatim(let text): text
        case .error, .integer, .null, .boolean, .double, .bigNumber, .array, .set, .map, .push: nil
        }
    }

    /// The values of an array, a set or a push message.
    package var elements: [RESPValue]? {
        switch self {
        case .array(let elements), .set(let elements), .push(let elements): elements
        case .simple, .error, .integer, .bulk, .null, .boolean, .double, .bigNumber, .verbatim, .map: nil
        }
    }

    /// Whether this is the text `word`.
    func isText(_ word: StaticString) -> Bool {
        guard let text else { return false }
        return text.span.isEqual(to: word)
    }
}
