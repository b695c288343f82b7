public import Bytes

/// The fields in which a response names its tags, by which an operator purges it together with others: `Cache-Tag` and
/// the like. A tag is a string of bytes, compared byte by byte, in one namespace for all origins and all fields. Commas
/// separate tags in `Cache-Tag` and `X-Magento-Tags`, spaces in any other field. Immutable.
public struct TagFields: Sendable, Equatable {
    /// The most tags of one response. Fastly reads 16 KB of `Surrogate-Key`, about as many.
    public static let mostTags = 1000
    /// The most bytes of one tag, as Cloudflare and Fastly have it.
    public static let longestTag = 1024

    /// As Cloudflare, Fastly, Varnish's xkey and Magento name them.
    public static let usual = TagFields(
        [ByteSlice("cache-tag"), ByteSlice("surrogate-key"), ByteSlice("xkey"), ByteSlice("x-magento-tags")])

    /// The names, in lower case.
    public let names: [ByteSlice]
    /// One bit for the length of each name; the highest one for all longer names.
    @usableFromInline let lengths: UInt64
    /// The fields whose lines may have one of the names: the unknown ones, and those of names that are known.
    @usableFromInline let candidates: FieldSet

    /// - Parameter names: in lower case.
    public init(_ names: [ByteSlice]) {
        self.names = names
        lengths = names.reduce(0) { $0 | Self.bit(of: $1.count) }
        candidates = names.reduce(FieldSet(.other)) { set, name in
            set.union(FieldSet(KnownField.recognise(name.span)))
        }
    }

    /// Whether there may be a tag in `fields`. One or two tests of bits for each line of another field.
    @inlinable
    public func occur(in fields: FieldView) -> Bool {
        var index = 0
        while index < fields.lines.count {
            if mayHaveName(fields.lines[index]), number(of: fields.name(at: index)) != nil { return true }
            index &+= 1
        }
        return false
    }

    /// Calls `visit` with the place of each tag in `fields.bytes`, in their order. A tag may come more than once, and
    /// be too long.
    public func forEachTag(in fields: FieldView, _ visit: (Range<Int>) -> Void) {
        for index in 0..<fields.lines.count where mayHaveName(fields.lines[index]) {
            guard let number = number(of: fields.name(at: index)) else { continue }
            let name = names[number]
            let hasCommas = name == Self.usual.names[0] || name == Self.usual.names[3]
            Self.split(fields.bytes, fields.lines[index].value.range, atCommas: hasCommas, visit)
        }
    }

    private static func split(
        _ bytes: Span<UInt8>, _ value: Range<Int>, atCommas: Bool, _ visit: (Range<Int>) -> Void
    ) {
        var start = value.lowerBound
        for index in value.lowerBound...value.upperBound {
            let isEnd = index == value.upperBound
            guard isEnd || (atCommas ? bytes[index] == UInt8(ascii: ",") : isSpace(bytes[index])) else { continue }
            var (first, end) = (start, index)
            while first < end, isSpace(bytes[first]) { first += 1 }
            while end > first, isSpace(bytes[end - 1]) { end -= 1 }
            if first < end { visit(first..<end) }
            start = index + 1
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

    @inlinable static func bit(of length: Int) -> UInt64 { 1 &<< UInt64(truncatingIfNeeded: min(length, 63)) }

    @inlinable
    func mayHaveName(_ line: FieldLine) -> Bool {
        candidates.contains(line.field) && lengths & Self.bit(of: line.name.count) != 0
    }

    @usableFromInline func number(of name: Span<UInt8>) -> Int? {
        names.firstIndex { candidate in
            let span = candidate.span
            return name.isEqualIgnoringCase(to: span)
        }
    }
}
