public import Bytes

/// The request fields that a response's `Vary` nominates (RFC 9110 §12.5.5), in lower case, each once, sorted,
/// so that two responses which vary by the same fields have equal rules.
public struct VaryRule: Sendable, Hashable {
    /// One nominated field: its name, and its number if it is one we know.
    struct Nominee: Sendable {
        let name: ByteSlice
        let field: KnownField
        /// Whether the value is compared as the `CodingSet` that it accepts, where it is one.
        let isCodingSet: Bool
        /// Whether fields with aliases of the name count too.
        let countsAliases: Bool
        /// Where it is `Accept-Encoding` of a response whose `Vary` does not name it: the codings of the response, which
        /// requests are compared by. `nil`: they are compared by what they say.
        let codings: ContentCodings?
    }

    let nominees: [Nominee]
    /// Whether requests are told apart by whether they accept the codings of the response, though its `Vary` does not
    /// name `Accept-Encoding`. Among variants that answer a request these go first: otherwise what is not encoded, which
    /// everybody can read, would hide them.
    public let isByCoding: Bool

    /// More members than this count as `*`. Each is compared with all others, and looked for in each request.
    package static let maxMembers = 64

    /// A rule that nominates nothing: every request matches.
    public static let none = VaryRule(nominees: [])

    private init(nominees: [Nominee]) {
        self.nominees = nominees
        isByCoding = nominees.contains { $0.codings != nil }
    }

    /// Reads every `Vary` line; `nil` where nothing ever matches (§4.1): if a member is `*`, no field name, or a field
    /// of which we do not know what the origin sees, or if there are more than `maxMembers`. Fields that are the same for
    /// all requests with one key are left out.
    ///
    /// A response with `Content-Encoding` varies by `Accept-Encoding` whether it says so or not: nginx compresses without
    /// a word in `Vary` unless it is told otherwise. Where it does not say so, its rule goes by what it is: requests that
    /// accept its codings are one, and any other is one with those that say just the same.
    /// - Parameter policy: what it says of codings and odd names is part of the rule, so that keys stay comparable when
    ///   the operator changes it.
    public init?(_ fields: FieldView, policy: borrowing CachingPolicy = CachingPolicy()) {
        switch Self.scope(fields, policy) {
        case .nothing: self = .none; return
        case .fields: break
        case .everything, .more: return nil
        }
        var nominees: [Nominee] = []
        let name = ByteBuffer(capacity: 64)
        var members = ListIterator(fields, .vary)
        while let member = members.next() {
            guard policy.sight(of: member) == .asSent else { continue }
            name.removeAll()
            for index in 0..<member.count { name.append(member[index].lowercasedASCII) }
            let field = KnownField.recognise(name.span)
            let isCodingSet = policy.normalisesAcceptEncoding && field == .acceptEncoding
            let candidate = Nominee(
                name: name.copied(), field: field, isCodingSet: isCodingSet, countsAliases: policy.forwardsOddNames,
                codings: nil)
            if !nominees.contains(where: { $0.name == candidate.name }) { nominees.append(candidate) }
        }
        if !nominees.contains(where: { $0.field == .acceptEncoding }), ContentCodings.scope(fields) != .none {
            nominees.append(Self.acceptEncoding(fields, policy))
        }
        nominees.sort { $0.name.precedes($1.name) }
        self.init(nominees: nominees)
    }

    /// What a response with `Content-Encoding` varies by, though it does not say so.
    private static func acceptEncoding(_ fields: FieldView, _ policy: borrowing CachingPolicy) -> Nominee {
        Nominee(
            name: ByteSlice("accept-encoding"), field: .acceptEncoding, isCodingSet: policy.normalisesAcceptEncoding,
            countsAliases: policy.forwardsOddNames,
            codings: ContentCodings.scope(fields) == .codings ? ContentCodings(fields) : nil)
    }

    /// What a response varies by.
    enum Scope {
        /// Nothing in which requests with one key differ.
        case nothing
        case fields
        /// `*`, or what cannot be a field name and so can match nothing either, or too many.
        case everything
        /// A field that says more to the origin than to us.
        case more
    }

    static func scope(_ fields: FieldView, _ policy: borrowing CachingPolicy) -> Scope {
        var scope = Scope.nothing
        var count = 0
        var members = ListIterator(fields, .vary)
        while let member = members.next() {
            count += 1
            if count > maxMembers { return .everything }
            // `*` is a token character, but a field of that name does not exist.
            if !member.isTokenOnly || (member.count == 1 && member[0] == UInt8(ascii: "*")) { return .everything }
            switch policy.sight(of: member) {
            case .sameForAll: break
            case .asSent: if scope == .nothing { scope = .fields }
            case .more: scope = .more
            }
        }
        return scope == .nothing && ContentCodings.scope(fields) != .none ? .fields : scope
    }

    /// Whether it nominates nothing.
    public var isEmpty: Bool { nominees.isEmpty }
    /// Fields that it nominates.
    public var count: Int { nominees.count }

    /// Whether responses with this rule and with `other` have the same codings, as far as requests are told apart by
    /// them though `Vary` does not say so.
    public func hasSameCodings(as other: VaryRule) -> Bool {
        isByCoding == other.isByCoding
            && (!isByCoding
                || nominees.first { $0.codings != nil }?.codings
                    == other.nominees.first { $0.codings != nil }?.codings)
    }

    /// The nominated name at `index`, in lower case.
    public func name(at index: Int) -> ByteSlice { nominees[index].name }

    public static func == (left: VaryRule, right: VaryRule) -> Bool {
        left.nominees.elementsEqual(right.nominees) {
            $0.name == $1.name && $0.isCodingSet == $1.isCodingSet && $0.countsAliases == $1.countsAliases
                && $0.codings == $1.codings
        }
    }

    public func hash(into hasher: inout Hasher) {
        for nominee in nominees { hasher.combine(nominee.name.span) }
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
