public import Bytes

/// Query parameters that the operator names: one name, or all names with one prefix. The counterpart of
/// `CookiePattern`.
public struct ParameterPattern: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The name as it stands in a URL, encoded; or the prefix of the names.
    public let name: ByteSlice
    /// Whether `name` is a prefix.
    public let isPrefix: Bool

    /// The parameter with this `name`, or all with it as a prefix; an empty prefix matches every parameter.
    public init(_ name: ByteSlice, isPrefix: Bool) {
        self.name = name
        self.isPrefix = isPrefix
    }

    /// The syntax of the configuration file: `utm_source`, `utm_*`.
    public init(stringLiteral text: String) {
        let isPrefix = text.hasSuffix("*")
        self.init(ByteSlice(isPrefix ? String(text.dropLast()) : text), isPrefix: isPrefix)
    }

    /// Whether the pattern includes a parameter with this name, byte for byte.
    func matches(_ parameter: Span<UInt8>) -> Bool {
        let name = name
        guard isPrefix else { return name.span.isEqual(to: parameter) }
        return parameter.count >= name.count && name.span.isEqual(to: parameter.extracting(0..<name.count))
    }

    /// Whether an origin may take a parameter with this name for one of the pattern (`LenientName`).
    func mayMean(_ parameter: Span<UInt8>) -> Bool {
        let name = name
        return isPrefix ? LenientName.mayBegin(parameter, with: name.span) : LenientName.mayBeSame(parameter, name.span)
    }
}
