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
    }

    let nominees: [Nominee]

    /// More members than this count as `*`. Each is compared with all others, and looked for in each request.
    package static let maxMembers = 64

    /// A rule that nominates nothing: every request matches.
    public static let none = VaryRule(nominees: [])

    private init(nominees: [Nominee]) { self.nominees = nominees }

    /// Reads every `Vary` line; `nil` where nothing ever matches (§4.1): if a member is `*`, no field name, or a field
    /// of which we do not know what the origin sees, or if there are more than `maxMembers`. Fields that are the same for
    /// all requests with one key are left out.
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
                name: name.copied(), field: field, isCodingSet: isCodingSet, countsAliases: policy.forwardsOddNames)
            if !nominees.contains(where: { $0.name == candidate.name }) { nominees.append(candidate) }
        }
        nominees.sort { $0.name.precedes($1.name) }
        self.nominees = nominees
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
        return scope
    }

    /// Whether it nominates nothing.
    public var isEmpty: Bool { nominees.isEmpty }
    /// Fields that it nominates.
    public var count: Int { nominees.count }

    /// The nominated name at `index`, in lower case.
    public func name(at index: Int) -> ByteSlice { nominees[index].name }

    public static func == (left: VaryRule, right: VaryRule) -> Bool {
        left.nominees.elementsEqual(right.nominees) {
            $0.name == $1.name && $0.isCodingSet == $1.isCodingSet && $0.countsAliases == $1.countsAliases
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
