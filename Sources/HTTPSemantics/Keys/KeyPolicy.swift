public import Bytes

/// The components of a route's cache key besides method, scheme and authority (RFC 9111 §2): path and query as they
/// were sent, unless the operator configures otherwise, and chosen request fields and cookies.
///
/// Only the key changes; the request to the origin keeps the client's path and query.
public struct KeyPolicy: Sendable, Equatable {
    /// The part of a query that belongs to the key.
    public enum Query: Sendable, Equatable {
        case asSent
        case dropped
        /// Only these parameters, as they were sent, and parameters that an origin may read as one of these
        /// (`LenientName`).
        case keeping([ParameterPattern])
        /// All but these, byte for byte.
        case dropping([ParameterPattern])
    }

    /// The whole query by default: only the origin knows which parameters matter.
    public var query: Query = .asSent {
        didSet { names = NameIndex(query) }
    }
    /// Finds names in the list of `query`; `nil` for a short list, which is walked.
    private var names: NameIndex?
    /// Parameters in order of their names; equal names keep their order.
    public var sortsQuery = false
    /// Request fields whose values stand in the key, names in any case.
    public var fields: [ByteSlice] = []
    /// Cookies whose values stand in the key, and cookies that an origin may take for one of them (`LenientName`).
    public var cookies: [ByteSlice] = []
    /// Fields with aliases of these names stand in the key too, since origins receive them.
    public var countsAliases = false

    /// The most fields and the most cookies that an operator may name. The key states of each whether it is present,
    /// and each is searched in every request; the same limit holds for fields that are searched in every response.
    public static let mostNames = 64

    public init() {}

    /// Whether the key has path and query as sent, without additions.
    public var isPlain: Bool {
        guard case .asSent = query else { return false }
        return !sortsQuery && fields.isEmpty && cookies.isEmpty
    }

    /// Whether requests for one URL may have different keys, by their fields or cookies.
    public var dividesByFields: Bool { !fields.isEmpty || !cookies.isEmpty }

    /// Appends the key of a request. The parts after the query begin with bytes that cannot occur in a target.
    public func append(pathAndQuery target: Span<UInt8>, of request: FieldView, to buffer: ByteBuffer) {
        if isPlain { return buffer.append(target) }
        appendTarget(target, to: buffer)
        for name in fields {
            buffer.append(0)
            var line = request.firstIndex(named: name.span)
            // The origin does not receive fields that `Connection` nominates: they count as absent.
            if let named = line, request.isNominated(lineAt: named) { line = nil }
            // Absent is not the same as empty.
            buffer.append(line == nil ? 2 : 1)
            while let index = line {
                buffer.append(request.value(at: index))
                line = request.firstIndex(named: name.span, from: index + 1)
                // LF cannot occur in a value. It keeps lines apart, since origins differ in how they combine several
                // lines.
                if line != nil { buffer.append(0x0a) }
            }
            if countsAliases { buffer.append(aliasesOf: name.span, in: request) }
        }
        guard !cookies.isEmpty else { return }
        guard !Self.hasUnpairedQuote(request), let uncertain = UncertainCookies(request) else {
            return Self.appendAllCookies(of: request, to: buffer)
        }
        for name in cookies {
            buffer.append(0)
            buffer.append(appendCookie(name, of: request, uncertain, to: buffer) ? 1 : 2)
        }
    }

    /// Origins read a limited number of parameters (PHP, node and qs 1,000) and ignore the rest: if there are more than
    /// this, the key keeps all of them in their order. The same holds for cookies.
    static let mostParameters = 256

    private func appendTarget(_ target: Span<UInt8>, to buffer: ByteBuffer) {
        guard let mark = target.firstIndex(of: UInt8(ascii: "?")) else { return buffer.append(target) }
        if case .dropped = query { return buffer.append(target.extracting(0..<mark)) }
        var kept: [Range<Int>] = []
        var (count, areAllCertain) = (0, true)
        var start = mark + 1
        while start <= target.count {
            count += 1
            guard count <= Self.mostParameters else { return buffer.append(target) }
            let end =
                start < target.count ? target.firstIndex(of: UInt8(ascii: "&"), from: start) ?? target.count : start
            let parameter = target.extracting(start..<end)
            let isCertain = Self.isCertain(parameter)
            if !isCertain { areAllCertain = false }
            if !isCertain || isKept(Self.name(parameter)) { kept.append(start..<end) }
            start = end + 1
        }
        if sortsQuery, areAllCertain {
            Self.sort(&kept, of: target)
        }
        buffer.append(target.extracting(0..<mark))
        for (number, piece) in kept.enumerated() {
            buffer.append(number == 0 ? "?" : "&")
            buffer.append(target.extracting(piece))
        }
    }

    /// Sorts by the names as the most lenient origin reads them, each read once. Parameters with the same such name
    /// keep their order.
    private static func sort(_ parameters: inout [Range<Int>], of target: Span<UInt8>) {
        let names = ByteBuffer(capacity: target.count)
        var pairs = parameters.map { parameter in
            let start = names.count
            var name = LenientName(Self.name(target.extracting(parameter)))
            while let byte = name.next() { names.append(byte) }
            return (name: start..<names.count, parameter: parameter)
        }
        pairs.sort { left, right in
            let order = names.span.extracting(left.name).order(against: names.span.extracting(right.name))
            return order == 0 ? left.parameter.lowerBound < right.parameter.lowerBound : order < 0
        }
        parameters = pairs.map(\.parameter)
    }

    /// Whether all origins read the same name: for some, `;` starts another parameter.
    private static func isCertain(_ parameter: Span<UInt8>) -> Bool {
        parameter.firstIndex(of: UInt8(ascii: ";")) == nil && LenientName.isCertain(name(parameter))
    }

    private func isKept(_ name: Span<UInt8>) -> Bool {
        switch query {
        case .asSent: return true
        case .dropped: return false
        case .keeping(let patterns): return names?.matches(name) ?? patterns.contains { $0.mayMean(name) }
        case .dropping(let patterns): return !(names?.matches(name) ?? patterns.contains { $0.matches(name) })
        }
    }

    @_lifetime(copy parameter)
    private static func name(_ parameter: Span<UInt8>) -> Span<UInt8> {
        parameter.extracting(0..<(parameter.firstIndex(of: UInt8(ascii: "=")) ?? parameter.count))
    }

    /// Appends the values of all cookies with this name, in their order: of several, some servers use the first, some
    /// the last (RFC 6265 §5.4). For cookies with another name that an origin may take for this one, appends the name
    /// too.
    /// - Returns: false if there is none.
    private func appendCookie(
        _ name: ByteSlice, of request: FieldView, _ uncertain: UncertainCookies, to buffer: ByteBuffer
    ) -> Bool {
        var isThere = false
        var (cookies, place) = (CookieIterator(request), -1)
        while cookies.next() {
            place += 1
            let isExact = cookies.name.isEqual(to: name.span)
            guard isExact || uncertain.contains(place) || LenientName.mayBeSame(cookies.name, name.span) else {
                continue
            }
            // `;` cannot occur in a cookie value.
            if isThere { buffer.append(";") }
            if !isExact {
                // Neither can byte 4.
                buffer.append(4)
                buffer.append(cookies.name)
                buffer.append(4)
            }
            buffer.append(cookies.value)
            isThere = true
        }
        return isThere
    }

    /// Whether a pair of a `Cookie` ends within quotes, with or without escapes. Some servers then take the next pair
    /// as part of its value, although RFC 6265 §4.1.1 permits no semicolon there: the cookies that they read cannot be
    /// predicted.
    private static func hasUnpairedQuote(_ request: FieldView) -> Bool {
        var lines = LineIterator(request, .cookie)
        while let value = lines.next() {
            var (isOpen, isOpenUnescaped, isEscaped) = (false, false, false)
            for index in 0..<value.count {
                let byte = value[index]
                if byte == UInt8(ascii: "\"") {
                    isOpen.toggle()
                    if !isEscaped { isOpenUnescaped.toggle() }
                } else if byte == UInt8(ascii: ";"), isOpen || isOpenUnescaped {
                    return true
                }
                isEscaped = byte == UInt8(ascii: "\\") && isOpenUnescaped && !isEscaped
            }
            if isOpen || isOpenUnescaped { return true }
        }
        return false
    }

    /// Appends all values of `Cookie`, in place of the cookies that are in the key.
    private static func appendAllCookies(of request: FieldView, to buffer: ByteBuffer) {
        buffer.append(0)
        var lines = LineIterator(request, .cookie)
        while let value = lines.next() {
            buffer.append(3)
            buffer.append(value)
        }
    }
}

extension NameIndex {
    fileprivate convenience init?(_ query: KeyPolicy.Query) {
        switch query {
        case .asSent, .dropped: return nil
        case .keeping(let patterns): self.init(patterns.map { ($0.name, $0.isPrefix) }, reading: .leniently)
        case .dropping(let patterns): self.init(patterns.map { ($0.name, $0.isPrefix) }, reading: .exactly)
        }
    }
}

/// Marks the cookies of a request, by position, whose names origins read differently: computed once, not for each
/// cookie of the key.
private struct UncertainCookies {
    /// A bit for each of `KeyPolicy.mostParameters`.
    private var bits = InlineArray<4, UInt64>(repeating: 0)

    /// `nil` if there are more cookies than `KeyPolicy.mostParameters`.
    init?(_ request: FieldView) {
        var (cookies, place) = (CookieIterator(request), 0)
        while cookies.next() {
            guard place < KeyPolicy.mostParameters else { return nil }
            if !LenientName.isCertain(cookies.name) { bits[place / 64] |= 1 << UInt64(place % 64) }
            place += 1
        }
    }

    func contains(_ place: Int) -> Bool { bits[place / 64] & 1 << UInt64(place % 64) != 0 }
}
