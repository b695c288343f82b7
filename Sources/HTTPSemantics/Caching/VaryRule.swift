public import Bytes

/// The request fields that a response's `Vary` nominates (RFC 9110 §12.5.5), in small letters, each once, sorted,
/// so that two responses which vary by the same fields have equal rules.
public struct VaryRule: Sendable, Hashable {
    /// One nominated field: its name, and its number if it is one we know.
    struct Nominee: Sendable {
        let name: ByteSlice
        let field: KnownField
        /// Its value counts as the `CodingSet` that it accepts, where it is one.
        let isCodingSet: Bool
    }

    let nominees: [Nominee]

    /// A rule that nominates nothing: every request matches.
    public static let none = VaryRule(nominees: [])

    private init(nominees: [Nominee]) { self.nominees = nominees }

    /// Reads every `Vary` line; `nil` if a member is `*` or no field name, since then nothing ever matches (§4.1).
    /// - Parameter normalisesAcceptEncoding: see `CachingPolicy`. Part of the rule, so that keys stay comparable when the operator changes it.
    public init?(_ fields: FieldView, normalisesAcceptEncoding: Bool = false) {
        guard fields.contains(.vary) else { self = .none; return }
        guard !Self.containsStar(fields) else { return nil }
        var nominees: [Nominee] = []
        let name = ByteBuffer(capacity: 64)
        var members = ListIterator(fields, .vary)
        while let member = members.next() {
            name.removeAll()
            for index in 0..<member.count { name.append(member[index].lowercasedASCII) }
            let field = KnownField.recognise(name.span)
            let candidate = Nominee(name: name.copied(), field: field, isCodingSet: normalisesAcceptEncoding && field == .acceptEncoding)
            if !nominees.contains(where: { $0.name == candidate.name }) { nominees.append(candidate) }
        }
        nominees.sort { $0.name.precedes($1.name) }
        self.nominees = nominees
    }

    /// Whether a `Vary` line has a member `*`, or one that cannot be a field name and so can match nothing either.
    static func containsStar(_ fields: FieldView) -> Bool {
        var members = ListIterator(fields, .vary)
        while let member = members.next() {
            // `*` is a token character, but a field of that name does not exist.
            if !member.isTokenOnly || (member.count == 1 && member[0] == UInt8(ascii: "*")) { return true }
        }
        return false
    }

    /// Whether it nominates nothing.
    public var isEmpty: Bool { nominees.isEmpty }
    /// Fields that it nominates.
    public var count: Int { nominees.count }

    /// The nominated name at `index`, in small letters.
    public func name(at index: Int) -> ByteSlice { nominees[index].name }

    public static func == (left: VaryRule, right: VaryRule) -> Bool {
        left.nominees.elementsEqual(right.nominees) { $0.name == $1.name && $0.isCodingSet == $1.isCodingSet }
    }

    public func hash(into hasher: inout Hasher) {
        for nominee in nominees { hasher.combine(nominee.name.span) }
    }
}

extension ByteSlice {
    /// Whether these bytes come before those of `other` in the order of dictionaries.
    func precedes(_ other: ByteSlice) -> Bool {
        let (left, right) = (span, other.span)
        for index in 0..<min(left.count, right.count) where left[index] != right[index] {
            return left[index] < right[index]
        }
        return left.count < right.count
    }
}

extension Hasher {
    /// Feeds `bytes` in, eight at a time.
    mutating func combine(_ bytes: Span<UInt8>) {
        combine(bytes.count)
        var word: UInt64 = 0
        for index in 0..<bytes.count {
            word = word << 8 | UInt64(bytes[index])
            if index & 7 == 7 { combine(word) }
        }
        combine(word)
    }
}
