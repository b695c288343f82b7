public import Bytes

/// Query parameters that the operator names: one, or all whose names begin so. The counterpart of `CookiePattern`.
public struct ParameterPattern: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The name as it stands in a URL, encoded; or what it begins with.
    public let name: ByteSlice
    /// Whether any ending counts.
    public let isPrefix: Bool

    /// The parameter called `name`, or those whose names begin so; with an empty `name` every parameter.
    public init(_ name: ByteSlice, isPrefix: Bool) {
        self.name = name
        self.isPrefix = isPrefix
    }

    /// As in the file: `utm_source`, `utm_*`.
    public init(stringLiteral text: String) {
        let isPrefix = text.hasSuffix("*")
        self.init(ByteSlice(isPrefix ? String(text.dropLast()) : text), isPrefix: isPrefix)
    }

    /// Whether a parameter called so is meant, byte for byte.
    func matches(_ parameter: Span<UInt8>) -> Bool {
        let name = name
        guard isPrefix else { return name.span.isEqual(to: parameter) }
        return parameter.count >= name.count && name.span.isEqual(to: parameter.extracting(0..<name.count))
    }

    /// Whether an origin may take a parameter called so for one that is meant (`LenientName`).
    func mayMean(_ parameter: Span<UInt8>) -> Bool {
        let name = name
        return isPrefix ? LenientName.mayBegin(parameter, with: name.span) : LenientName.mayBeSame(parameter, name.span)
    }
}
