import Bytes

/// The name of a query's parameter, decoded. Names are compared byte by byte: a comparison as text would treat
/// different characters as equal.
public struct QueryParameterName: Sendable, Hashable, Comparable, ExpressibleByStringLiteral {
    let bytes: [UInt8]

    init(_ bytes: Span<UInt8>) {
        var copy: [UInt8] = []
        copy.reserveCapacity(bytes.count)
        for index in 0..<bytes.count { copy.append(bytes[index]) }
        self.bytes = copy
    }

    public init(stringLiteral text: String) { bytes = Array(text.utf8) }

    public static func < (left: QueryParameterName, right: QueryParameterName) -> Bool {
        let (left, right) = (left.bytes, right.bytes)
        return left.span.order(against: right.span) < 0
    }
}

/// A query as parsed by the application/x-www-form-urlencoded parser (WHATWG URL §5.1), in reused memory: once it has
/// grown, reading does not allocate. Confined to one loop.
public final class QueryParameters {
    /// Ranges of `text`.
    private struct Pair {
        var name: Range<Int>
        var value: Range<Int>
    }

    /// Names and values, decoded.
    private let text = ByteBuffer(capacity: 256)
    private var pairs: [Pair] = []

    public init() {}

    /// - Returns: false if there are more than `KeyPolicy.mostParameters`, including empty ones.
    func read(_ query: Span<UInt8>) -> Bool {
        text.removeAll()
        pairs.removeAll(keepingCapacity: true)
        var (start, count) = (0, 0)
        while start < query.count {
            count += 1
            guard count <= KeyPolicy.mostParameters else { return false }
            let end = query.firstIndex(of: UInt8(ascii: "&"), from: start) ?? query.count
            if end > start {
                let piece = query.extracting(start..<end)
                let equals = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.count
                let name = decode(piece.extracting(0..<equals))
                pairs.append(Pair(name: name, value: decode(piece.extracting(min(equals + 1, piece.count)...))))
            }
            start = end + 1
        }
        return true
    }

    /// Decodes a name from the field ('Parse a key' of the No-Vary-Search draft).
    func name(_ encoded: Span<UInt8>) -> QueryParameterName {
        let text = text
        text.removeAll()
        let place = decode(encoded)
        return QueryParameterName(text.span.extracting(place))
    }

    /// Keeps the parameters whose names are among `names`; with `isKept` false, keeps the others instead.
    /// - Parameter names: sorted, for binary search: origin and client control the length of both lists.
    func keep(named names: [QueryParameterName], _ isKept: Bool) {
        let text = text
        var kept = 0
        for index in pairs.indices where names.holds(text.span.extracting(pairs[index].name)) == isKept {
            pairs[kept] = pairs[index]
            kept += 1
        }
        pairs.removeLast(pairs.count - kept)
    }

    /// Sorts by names; equal names keep their order. The draft sorts by UTF-16, this method by bytes: whether two
    /// sorted lists are equal does not depend on the sort order.
    func sort() {
        guard pairs.count > 1 else { return }
        let text = text
        pairs.sort { left, right in
            let order = text.span.extracting(left.name).order(against: text.span.extracting(right.name))
            return order == 0 ? left.name.lowerBound < right.name.lowerBound : order < 0
        }
    }

    /// Writes different lists differently, in printable bytes without a space.
    func write(to buffer: ByteBuffer) {
        for pair in pairs {
            write(pair.name, to: buffer)
            buffer.append(UInt8(ascii: "="))
            write(pair.value, to: buffer)
            buffer.append(UInt8(ascii: "&"))
        }
    }

    private func write(_ place: Range<Int>, to buffer: ByteBuffer) {
        let text = text
        let bytes = text.span
        for index in place {
            switch bytes[index] {
            case UInt8(ascii: " "):
                buffer.append(UInt8(ascii: "+"))
            case 0..<0x20, 0x7f, UInt8(ascii: "%"), UInt8(ascii: "&"), UInt8(ascii: "+"), UInt8(ascii: "="):
                buffer.append(UInt8(ascii: "%"))
                if bytes[index] < 16 { buffer.append(UInt8(ascii: "0")) }
                buffer.append(hexadecimal: UInt64(bytes[index]))
            default:
                buffer.append(bytes[index])
            }
        }
    }

    /// `+` becomes a space, `%XX` a byte, and invalid UTF-8 becomes U+FFFD.
    private func decode(_ bytes: Span<UInt8>) -> Range<Int> {
        let text = text
        let start = text.count
        var isASCII = true
        var index = 0
        while index < bytes.count {
            var byte = bytes[index]
            if byte == UInt8(ascii: "%"), index + 2 < bytes.count,
                let high = bytes[index + 1].hexadecimalValue, let low = bytes[index + 2].hexadecimalValue
            {
                byte = high << 4 | low
                index += 2
            } else if byte == UInt8(ascii: "+") {
                byte = UInt8(ascii: " ")
            }
            if byte >= 0x80 { isASCII = false }
            text.append(byte)
            index += 1
        }
        if !isASCII {
            let repaired = String(text.span.extracting(start...))
            text.truncate(to: start)
            text.append(string: repaired)
        }
        return start..<text.count
    }
}

extension Array<QueryParameterName> {
    /// Whether `name` is in this array, which is sorted.
    fileprivate func holds(_ name: Span<UInt8>) -> Bool {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            let own = self[middle].bytes
            let order = own.span.order(against: name)
            if order == 0 { return true }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return false
    }
}
