public import Bytes
import RawStructuredFieldValues

/// Which differences between queries do not matter, as a response says (draft-ietf-httpbis-no-vary-search).
///
/// The draft's algorithm in 'Parse a URL variation config' drops a field that has neither `params` nor `except`, while
/// its introduction and examples give `key-order` by itself a meaning. We follow the prose: `key-order` counts alone.
public struct NoVarySearch: Sendable, Hashable {
    /// Which parameters count.
    public enum Parameters: Sendable, Hashable {
        case allBut([String])
        case only([String])
    }

    public let parameters: Parameters
    public let orderMatters: Bool

    /// The config under which queries are compared byte by byte.
    public static let `default` = NoVarySearch(parameters: .allBut([]), orderMatters: true)

    init(parameters: Parameters, orderMatters: Bool) {
        self.parameters = parameters
        self.orderMatters = orderMatters
    }

    /// Whether it is the default, so that a query is its own canonical form.
    public var isDefault: Bool { self == .default }

    /// That of a response. What is wrong or contradicts itself is the default: fewer hits, no wrong ones.
    public init(_ fields: FieldView) {
        self = .default
        guard fields.contains(.noVarySearch),
              let dictionary = StructuredFields.dictionary(fields, named: Array("no-vary-search".utf8).span) else { return }
        var orderMatters = true
        if let value = dictionary["key-order"] {
            guard case .item(let item) = value, case .bool(let ignoresOrder) = item.rfc9651BareItem else { return }
            orderMatters = !ignoresOrder
        }
        switch (dictionary["params"], dictionary["except"]) {
        case (nil, nil):
            self.init(parameters: .allBut([]), orderMatters: orderMatters)
        case (let params?, nil):
            guard let names = Self.names(params) else { return }
            self.init(parameters: .allBut(names), orderMatters: orderMatters)
        case (nil, let except?):
            guard let names = Self.names(except) else { return }
            self.init(parameters: .only(names), orderMatters: orderMatters)
        case (_?, _?):
            return
        }
    }

    private static func names(_ value: ItemOrInnerList) -> [String]? {
        guard case .innerList(let list) = value else { return nil }
        var names: [String] = []
        for item in list.bareInnerList {
            guard case .string(let text) = item.rfc9651BareItem else { return nil }
            names.append(Self.decoded(Array(text.utf8)))
        }
        return names.sorted()
    }

    /// A text that is the same for two queries exactly if they are equivalent under this config: the key of the second
    /// look-up. `query` is what stands behind the `?`; `nil` where there is none.
    public func canonicalQuery(_ query: ByteSlice?) -> ByteSlice {
        if isDefault { return query ?? ByteSlice("") }
        var pairs = Self.pairs(query)
        switch parameters {
        case .allBut(let names): pairs.removeAll { names.contains($0.name) }
        case .only(let names): pairs.removeAll { !names.contains($0.name) }
        }
        if !orderMatters {
            // Stable, so that repeated names keep their order; by UTF-16 code units, as the draft sorts.
            let order = pairs.enumerated().sorted {
                let (left, right) = ($0.element.name, $1.element.name)
                return left == right ? $0.offset < $1.offset : left.utf16.lexicographicallyPrecedes(right.utf16)
            }
            pairs = order.map(\.element)
        }
        let buffer = ByteBuffer(capacity: 64)
        for pair in pairs {
            Self.append(pair.name, to: buffer)
            buffer.append("=")
            Self.append(pair.value, to: buffer)
            buffer.append("&")
        }
        return buffer.copied()
    }

    /// 'Comparing' of the draft, for two URIs that are equal but for the query.
    public func areEquivalent(_ left: ByteSlice?, _ right: ByteSlice?) -> Bool {
        if isDefault { return left == right }
        return canonicalQuery(left) == canonicalQuery(right)
    }

    private struct Pair {
        let name: String
        let value: String
    }

    /// The application/x-www-form-urlencoded parser (WHATWG URL §5.1).
    private static func pairs(_ query: ByteSlice?) -> [Pair] {
        guard let query else { return [] }
        var pairs: [Pair] = []
        let bytes = query.span
        var start = 0
        while start < bytes.count {
            let end = bytes.firstIndex(of: UInt8(ascii: "&"), from: start) ?? bytes.count
            if end > start {
                let piece = bytes.extracting(start..<end)
                let equals = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.count
                pairs.append(Pair(
                    name: decoded(piece.extracting(0..<equals).copied()),
                    value: decoded(piece.extracting(min(equals + 1, piece.count)...).copied())
                ))
            }
            start = end + 1
        }
        return pairs
    }

    /// `+` is a space, `%XX` a byte, and what is no UTF-8 becomes U+FFFD.
    private static func decoded(_ bytes: [UInt8]) -> String {
        var output: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
               let high = bytes[index + 1].hexadecimalValue, let low = bytes[index + 2].hexadecimalValue {
                output.append(high << 4 | low)
                index += 3
            } else {
                output.append(bytes[index] == UInt8(ascii: "+") ? 0x20 : bytes[index])
                index += 1
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Percent-encodes all but letters and digits, so that the separators are unmistakable.
    private static func append(_ text: String, to buffer: ByteBuffer) {
        for byte in text.utf8 {
            if byte.lowercasedASCII &- 0x61 < 26 || byte &- 0x30 < 10 {
                buffer.append(byte)
            } else {
                buffer.append("%")
                if byte < 16 { buffer.append("0") }
                buffer.append(hexadecimal: UInt64(byte))
            }
        }
    }
}

extension Span where Element == UInt8 {
    func copied() -> [UInt8] {
        var copy: [UInt8] = []
        copy.reserveCapacity(count)
        for index in 0..<count { copy.append(self[index]) }
        return copy
    }
}
