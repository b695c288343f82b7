/// One `cache-directive = token [ "=" ( token / quoted-string ) ]`, read in place (RFC 9111 §5.2).
struct CacheDirective: ~Escapable {
    enum Form {
        /// No argument.
        case bare
        /// A token, or a quoted string without its quotes.
        case token, quoted
        /// White space around the `=`, a quoted string without closing quote, or bytes after the closing quote.
        case malformed
    }

    let name: Span<UInt8>
    let argument: Span<UInt8>
    let form: Form

    @_lifetime(copy text)
    fileprivate init(_ text: Span<UInt8>, name: Range<Int>, argument: Range<Int>, _ form: Form) {
        self.name = text.extracting(name)
        self.argument = text.extracting(argument)
        self.form = form
    }
}

/// The directives of a field across all its lines, in order. Does not allocate.
///
/// The content of a quoted string is not a directive. Invalid input never ends the iteration: a directive that forbids
/// something must not hide behind an invalid neighbour.
struct DirectiveIterator: ~Escapable {
    private var lines: LineIterator
    private var line: DirectiveReader

    /// - Parameter field: `Cache-Control`, or a field with the same syntax.
    @_lifetime(copy fields)
    init(_ fields: FieldView, _ field: KnownField) {
        lines = LineIterator(fields, field)
        line = DirectiveReader(fields.bytes.extracting(0..<0))
    }

    /// The next directive; `nil` after the last.
    @inline(__always)
    @_lifetime(copy self)
    mutating func next() -> CacheDirective? {
        while true {
            if let directive = line.next() { return directive }
            guard let value = lines.next() else { return nil }
            line = DirectiveReader(value)
        }
    }
}

/// The directives of one line.
private struct DirectiveReader: ~Escapable {
    private let text: Span<UInt8>
    private var position = 0

    @_lifetime(copy text)
    init(_ text: Span<UInt8>) { self.text = text }

    @inline(__always)
    @_lifetime(copy self)
    mutating func next() -> CacheDirective? {
        skip { $0 == UInt8(ascii: ",") || $0.isOptionalWhitespace }
        guard position < text.count else { return nil }

        let nameStart = position
        skip { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=") }
        let nameEnd = trimmedEnd(from: nameStart, to: position)
        guard position < text.count, text[position] == UInt8(ascii: "=") else {
            return CacheDirective(text, name: nameStart..<nameEnd, argument: nameEnd..<nameEnd, .bare)
        }
        let spaced = nameEnd != position || (position + 1 < text.count && text[position + 1].isOptionalWhitespace)
        position += 1
        let (argument, form) = argument()
        return CacheDirective(text, name: nameStart..<nameEnd, argument: argument, spaced ? .malformed : form)
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
