import Bytes

/// The languages of a site, of which the best is chosen for a request by the look-up of RFC 4647 §3.4 with the weights
/// of RFC 9110 §12.5.4: `de-AT` finds `de`, and `de` does not find `de-AT`. Immutable; choosing does not allocate.
struct LanguageList: Sendable {
    /// Language tags (RFC 5646) in the operator's spelling, at most `KeyPolicy.mostNames`.
    let tags: [ByteSlice]

    /// Ranges of a request beyond these do not count. Browsers send a few; each is compared with all tags.
    static let mostRanges = 64

    /// The best tag for a request, and the line whose value has the range that found it, so that the tag is no longer
    /// than that value; `nil` if no range finds one. `*` finds none: it asks for no language.
    ///
    /// Of two ranges with the same weight the first counts. A range with the weight 0 excludes the tags that it is, or
    /// begins, unless a longer range names them.
    func best(for request: FieldView) -> (tag: Int, line: Int)? {
        var best: (tag: Int, line: Int)?
        var bestWeight = 0
        var ranges = LanguageRanges(request)
        while ranges.next() {
            guard ranges.weight > bestWeight, let tag = longest(beginning: ranges.range, in: request) else { continue }
            best = (tag, ranges.line)
            bestWeight = ranges.weight
        }
        return best
    }

    /// The longest tag that a range is or begins with, at the end of a subtag, and that the request does not exclude.
    private func longest(beginning range: Span<UInt8>, in request: FieldView) -> Int? {
        var found: Int?
        var length = 0
        for index in tags.indices {
            let tag = tags[index]
            if tag.count > length, range.begins(withSubtagsOf: tag.span), !Self.isExcluded(tag, by: request) {
                (found, length) = (index, tag.count)
            }
        }
        return found
    }

    private static func isExcluded(_ tag: ByteSlice, by request: FieldView) -> Bool {
        var (length, isExcluded) = (0, false)
        var ranges = LanguageRanges(request)
        while ranges.next() {
            let count = ranges.range.count
            guard count >= length, tag.span.begins(withSubtagsOf: ranges.range) else { continue }
            isExcluded = ranges.weight == 0 || isExcluded && count == length
            length = count
        }
        return isExcluded
    }
}

/// The language ranges of `Accept-Language` with their weights, line by line in their order. Omits `*`, and ranges with
/// an invalid weight. Does not allocate.
private struct LanguageRanges: ~Escapable {
    private let fields: FieldView
    private var members: MemberIterator
    private var nextLine = 0
    private var count = 0
    /// The line that has the current range.
    private(set) var line = 0
    private(set) var range: Span<UInt8>
    /// Thousandths, up to 1,000.
    private(set) var weight = 0

    @_lifetime(copy fields)
    init(_ fields: FieldView) {
        self.fields = fields
        range = fields.bytes.extracting(0..<0)
        members = MemberIterator(range)
    }

    /// Moves to the next range.
    /// - Returns: false after the last.
    @_lifetime(self: copy self)
    mutating func next() -> Bool {
        while true {
            while let member = members.next() {
                count += 1
                guard count <= LanguageList.mostRanges else { return false }
                let end = member.firstIndex(of: UInt8(ascii: ";")) ?? member.count
                range = member.extracting(0..<end).trimmingOptionalWhitespace()
                if range.isEmpty || range.isEqual(to: "*") { continue }
                guard end < member.count else {
                    weight = 1000
                    return true
                }
                guard let weight = Self.weight(member.extracting((end + 1)...)) else { continue }
                self.weight = weight
                return true
            }
            guard let next = fields.firstIndex(of: .acceptLanguage, from: nextLine) else { return false }
            line = next
            nextLine = next + 1
            members = MemberIterator(fields.value(at: next))
        }
    }

    /// The thousandths of `q=0.8` (RFC 9110 §12.4.2); `nil` if `text` is no weight.
    private static func weight(_ text: Span<UInt8>) -> Int? {
        let text = text.trimmingOptionalWhitespace()
        guard text.count >= 3, text[0].lowercasedASCII == UInt8(ascii: "q"), text[1] == UInt8(ascii: "="),
            text[2] == UInt8(ascii: "0") || text[2] == UInt8(ascii: "1"),
            text.count == 3 || text[3] == UInt8(ascii: ".")
        else { return nil }
        var weight = 1000 * Int(text[2] - UInt8(ascii: "0"))
        var unit = 100
        for index in 3..<text.count where index > 3 {
            let digit = text[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            weight += unit * Int(digit)
            unit /= 10
        }
        return weight <= 1000 ? weight : nil
    }
}

extension Span where Element == UInt8 {
    /// Whether this language tag or range is `other`, in any case, or begins with all of its subtags.
    fileprivate func begins(withSubtagsOf other: Span<UInt8>) -> Bool {
        guard count >= other.count, extracting(0..<other.count).isEqualIgnoringCase(to: other) else { return false }
        return count == other.count || self[other.count] == UInt8(ascii: "-")
    }
}
