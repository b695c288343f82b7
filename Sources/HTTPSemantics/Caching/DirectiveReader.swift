import Bytes

/// One `cache-directive = token [ "=" ( token / quoted-string ) ]` of a value, as ranges into it (RFC 9111 §5.2).
struct CacheDirective {
    enum Form {
        /// No argument.
        case bare
        /// A token, or a quoted string of which the quotes are left out.
        case token, quoted
        /// White space around the `=`, a quoted string without an end, something after its end.
        case malformed
    }

    let name: Range<Int>
    let argument: Range<Int>
    let form: Form
}

/// Reads the directives of one `Cache-Control` line, in order, without allocating.
///
/// What stands inside a quoted string is not a directive. Wrong input never ends the walk: a directive that
/// forbids something must not hide behind a broken neighbour.
struct DirectiveReader: ~Escapable {
    private let text: Span<UInt8>
    private var position = 0

    @_lifetime(copy text)
    init(_ text: Span<UInt8>) { self.text = text }

    mutating func next() -> CacheDirective? {
        skip { $0 == UInt8(ascii: ",") || $0.isOptionalWhitespace }
        guard position < text.count else { return nil }

        let nameStart = position
        skip { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=") }
        let nameEnd = trimmedEnd(from: nameStart, to: position)
        guard position < text.count, text[position] == UInt8(ascii: "=") else {
            return CacheDirective(name: nameStart..<nameEnd, argument: nameEnd..<nameEnd, form: .bare)
        }
        let spaced = nameEnd != position || (position + 1 < text.count && text[position + 1].isOptionalWhitespace)
        position += 1
        let (argument, form) = argument()
        return CacheDirective(name: nameStart..<nameEnd, argument: argument, form: spaced ? .malformed : form)
    }

    private mutating func argument() -> (Range<Int>, CacheDirective.Form) {
        skip(\.isOptionalWhitespace)
        let start = position
        if start < text.count, text[start] == UInt8(ascii: "\""), let end = closingQuote(after: start) {
            position = end + 1
            skip(\.isOptionalWhitespace)
            let junk = position
            skip { $0 != UInt8(ascii: ",") }
            return (start + 1..<end, position == junk ? .quoted : .malformed)
        }
        skip { $0 != UInt8(ascii: ",") }
        let end = trimmedEnd(from: start, to: position)
        let quoted = start < end && text[start] == UInt8(ascii: "\"")
        return (start..<end, quoted || start == end ? .malformed : .token)
    }

    private func closingQuote(after start: Int) -> Int? {
        var index = start + 1
        while index < text.count {
            if text[index] == UInt8(ascii: "\"") { return index }
            index += text[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return nil
    }

    private func trimmedEnd(from start: Int, to end: Int) -> Int {
        var end = end
        while end > start, text[end - 1].isOptionalWhitespace { end -= 1 }
        return end
    }

    private mutating func skip(_ matches: (UInt8) -> Bool) {
        while position < text.count, matches(text[position]) { position += 1 }
    }
}
