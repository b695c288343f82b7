public import Bytes

/// Takes parts out of a route's requests before the key is made: cookies that the operator names, and of
/// `Accept-Language` all but the best of the site's languages. The key, pass cookies, `Vary`, sharing and the origin see
/// only the rest. The origin does not receive the removed parts, so its response does not depend on them. Immutable.
///
/// A normalized head has the length of the head as it was sent, and all other lines keep their places: the ranges of the
/// `RequestHead` hold for both. A kept cookie moves to the left, and the rest of the value becomes spaces, which belong
/// to no line:
///
/// ```
/// Cookie: _ga=1; theme=dark; _gid=2           Cookie: theme=dark␣␣␣␣␣␣␣␣␣␣␣␣␣␣
/// Accept-Language: de-AT,de;q=0.9,en;q=0.5    Accept-Language: de␣␣␣␣␣␣␣␣␣␣␣␣␣␣␣␣␣␣␣␣␣
/// Cookie: _ga=1                               ␣ (no line, and `present` has no `cookie`)
/// ```
///
/// The bytes of a normalized head, if a client sends them, are normalized to the same head.
public final class RequestNormalization: Sendable {
    /// Names and beginnings of names, byte for byte: unlike a pass cookie, a cookie that is not removed does no harm.
    private let strippedCookies: [CookiePattern]
    private let languages: LanguageList
    /// The fields without which a request stays as it is.
    private let fields: FieldSet

    /// - Parameters:
    ///   - strippedCookies: at most `KeyPolicy.mostNames`, since each cookie is compared with all of them.
    ///   - languages: language tags, at most as many; empty: `Accept-Language` stays.
    /// - Returns: `nil` if both are empty.
    public init?(strippedCookies: [CookiePattern], languages: [ByteSlice]) {
        if strippedCookies.isEmpty, languages.isEmpty { return nil }
        self.strippedCookies = strippedCookies
        self.languages = LanguageList(tags: languages)
        var fields: FieldSet = []
        if !strippedCookies.isEmpty { fields.insert(.cookie) }
        if !languages.isEmpty { fields.insert(.acceptLanguage) }
        self.fields = fields
    }

    /// The normalized head of a request; `nil` if it is the same.
    /// - Parameters:
    ///   - request: its bytes may go on behind the head.
    ///   - length: of the head.
    ///   - memory: the chunk of an earlier result that nobody uses any more. Allocates nothing if it is large enough.
    public func head(of request: FieldView, length: Int, reusing memory: Chunk? = nil) -> HeadBlock? {
        guard !request.present.isDisjoint(with: fields) else { return nil }
        let choice = fields.contains(.acceptLanguage) ? languages.best(for: request) : nil
        guard changesCookies(of: request) || changesLanguage(of: request, to: choice) else { return nil }
        let start = HeadBlock.room(forLines: request.lines.count)
        let chunk: Chunk
        if let memory, memory.capacity >= start + length {
            chunk = memory
        } else {
            chunk = Chunk(capacity: start + length)
        }
        chunk.write(request.bytes.extracting(0..<length), at: start)
        var (count, present) = (0, request.present.subtracting(fields))
        for index in 0..<request.lines.count {
            let line = request.lines[index]
            var upper = Int(line.value.upper)
            if fields.contains(line.field) {
                upper = Int(line.value.lower)
                switch line.field {
                case .cookie: upper += writeCookies(request.value(at: index), to: chunk, at: start + upper)
                default:
                    guard let choice, choice.line == index else { break }
                    let tag = languages.tags[choice.tag]
                    upper += Self.write(tag.span, to: chunk, at: start + upper)
                }
                Self.blank(start + upper..<start + Int(line.value.upper), of: chunk)
                if upper == Int(line.value.lower) { continue }
            }
            present.insert(line.field)
            let kept: InlineArray<1, FieldLine> = [
                FieldLine(name: line.name, value: ByteRange(Int(line.value.lower)..<upper), field: line.field)
            ]
            chunk.write(values: kept.span, at: HeadBlock.room(forLines: count))
            count += 1
        }
        // An `Upgrade` that is ignored has a line, but is not in `present`.
        present = present.intersection(request.present)
        return HeadBlock(chunk, lineCount: count, bytes: start..<start + length, present: present)
    }

    // MARK: Cookies

    /// Whether a cookie is stripped, or a line has none: such a line is left where all cookies were stripped.
    private func changesCookies(of request: FieldView) -> Bool {
        guard fields.contains(.cookie) else { return false }
        var lines = LineIterator(request, .cookie)
        while let value = lines.next() { if changesCookies(in: value) { return true } }
        return false
    }

    private func changesCookies(in value: Span<UInt8>) -> Bool {
        var (pairs, hasCookie) = (CookiePairs(value), false)
        while pairs.next() {
            if isStripped(pairs.name) { return true }
            hasCookie = true
        }
        return !hasCookie
    }

    /// Writes the cookies of one line that are not stripped, with a semicolon between each two. If none is stripped,
    /// that is the value as it was sent.
    /// - Returns: the number of bytes, at most as many as `value` has.
    private func writeCookies(_ value: Span<UInt8>, to chunk: Chunk, at start: Int) -> Int {
        guard changesCookies(in: value) else { return value.count }
        var count = 0
        var pairs = CookiePairs(value)
        while pairs.next() {
            if isStripped(pairs.name) { continue }
            // The first cookie has no space before it: a client that sends the same cookies without the stripped ones
            // sends these bytes.
            if count > 0 { count += Self.write(Self.separator.span, to: chunk, at: start + count) }
            count += Self.write(count > 0 ? pairs.text : pairs.pair, to: chunk, at: start + count)
        }
        return count
    }

    private static let separator: InlineArray<1, UInt8> = [UInt8(ascii: ";")]

    private func isStripped(_ name: Span<UInt8>) -> Bool {
        for pattern in strippedCookies {
            let known = pattern.name
            guard name.count >= known.count, pattern.isPrefix || name.count == known.count else { continue }
            if name.extracting(0..<known.count).isEqual(to: known.span) { return true }
        }
        return false
    }

    // MARK: Language

    private func changesLanguage(of request: FieldView, to choice: (tag: Int, line: Int)?) -> Bool {
        guard fields.contains(.acceptLanguage), request.present.contains(.acceptLanguage) else { return false }
        guard let choice, let only = request.onlyValue(of: .acceptLanguage) else { return true }
        let tag = languages.tags[choice.tag]
        return !only.isEqual(to: tag.span)
    }

    // MARK: Writing

    /// - Returns: the number of bytes.
    private static func write(_ text: Span<UInt8>, to chunk: Chunk, at offset: Int) -> Int {
        chunk.write(text, at: offset)
        return text.count
    }

    private static let spaces = InlineArray<64, UInt8>(repeating: 0x20)

    private static func blank(_ range: Range<Int>, of chunk: Chunk) {
        var start = range.lowerBound
        while start < range.upperBound {
            let count = min(range.upperBound - start, 64)
            chunk.write(spaces.span.extracting(0..<count), at: start)
            start += count
        }
    }
}

/// The cookies of one line of `Cookie`, as `CookieIterator` reads them, with their places in the line.
private struct CookiePairs: ~Escapable {
    private let value: Span<UInt8>
    /// The first unread byte of `value`.
    private var position = 0
    /// The current pair, without the white space around it.
    private(set) var pair: Span<UInt8>
    /// The current pair with the white space before it.
    private(set) var text: Span<UInt8>

    @_lifetime(copy value)
    init(_ value: Span<UInt8>) {
        self.value = value
        pair = value.extracting(0..<0)
        text = pair
    }

    /// The name of the current pair.
    var name: Span<UInt8> {
        @_lifetime(copy self)
        get { pair.extracting(0..<(pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.count)).trimmingOptionalWhitespace() }
    }

    /// Moves to the next pair.
    /// - Returns: false after the last.
    @_lifetime(self: copy self)
    mutating func next() -> Bool {
        while position < value.count {
            let end = value.firstIndex(of: UInt8(ascii: ";"), from: position) ?? value.count
            var (lower, upper) = (position, end)
            while lower < upper, value[lower].isOptionalWhitespace { lower += 1 }
            while upper > lower, value[upper - 1].isOptionalWhitespace { upper -= 1 }
            text = value.extracting(position..<upper)
            pair = value.extracting(lower..<upper)
            position = end + 1
            if !pair.isEmpty { return true }
        }
        return false
    }
}
