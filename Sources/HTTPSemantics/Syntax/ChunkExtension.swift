import Bytes

/// Checks chunk extensions a byte at a time (RFC 9112 §7.1.1). Their names and values are ignored.
///
///     *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )
struct ChunkExtension {
    private enum State {
        case spaceBeforeSemicolon
        case nameStart, name, spaceBehindName
        case valueStart, value, spaceBehindValue
        case quoted, escaped, unquoted
    }

    enum Verdict { case more, finished, invalid }

    private var state: State

    /// `first` is the byte after the size; `nil` if that byte starts no extension.
    init?(first: UInt8) {
        switch first {
        case UInt8(ascii: ";"): state = .nameStart
        case 0x20, 0x09: state = .spaceBeforeSemicolon
        default: return nil
        }
    }

    /// The verdict is `finished` at the CR after the extensions.
    mutating func take(_ byte: UInt8) -> Verdict {
        switch state {
        case .spaceBeforeSemicolon, .spaceBehindValue:
            if byte.isOptionalWhitespace { return .more }
            return byte == UInt8(ascii: ";") ? go(.nameStart) : .invalid
        case .nameStart:
            if byte.isOptionalWhitespace { return .more }
            return byte.isToken ? go(.name) : .invalid
        case .name:
            if byte.isToken { return .more }
            if byte.isOptionalWhitespace { return go(.spaceBehindName) }
            return byte == UInt8(ascii: "=") ? go(.valueStart) : end(byte)
        case .spaceBehindName:
            if byte.isOptionalWhitespace { return .more }
            if byte == UInt8(ascii: "=") { return go(.valueStart) }
            return byte == UInt8(ascii: ";") ? go(.nameStart) : .invalid
        case .valueStart:
            if byte.isOptionalWhitespace { return .more }
            if byte == UInt8(ascii: "\"") { return go(.quoted) }
            return byte.isToken ? go(.value) : .invalid
        case .value:
            if byte.isToken { return .more }
            return byte.isOptionalWhitespace ? go(.spaceBehindValue) : end(byte)
        case .quoted:
            if byte == UInt8(ascii: "\"") { return go(.unquoted) }
            if byte == UInt8(ascii: "\\") { return go(.escaped) }
            return byte.isForbiddenInValue ? .invalid : .more
        case .escaped:
            return byte.isForbiddenInValue ? .invalid : go(.quoted)
        case .unquoted:
            return byte.isOptionalWhitespace ? go(.spaceBehindValue) : end(byte)
        }
    }

    private mutating func go(_ next: State) -> Verdict {
        state = next
        return .more
    }

    private mutating func end(_ byte: UInt8) -> Verdict {
        switch byte {
        case UInt8(ascii: ";"): go(.nameStart)
        case 0x0d: .finished
        default: .invalid
        }
    }
}
