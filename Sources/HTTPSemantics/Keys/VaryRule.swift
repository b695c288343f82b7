public import Bytes

/// The request fields that a response's `Vary` nominates (RFC 9110 §12.5.5), in lower case, each once, sorted, so that
/// two responses which vary by the same fields have equal rules.
public struct VaryRule: Sendable, Hashable {
    /// One nominated field: its name, and its `KnownField`.
    struct Nominee: Sendable {
        let name: ByteSlice
        let field: KnownField
        /// Whether the value is compared as the `CodingSet` that it accepts, if it can be read as one.
        let isCodingSet: Bool
        /// Whether fields with aliases of the name count too.
        let countsAliases: Bool
        /// For `Accept-Encoding` that the response's `Vary` does not name: the codings of the response, and requests
        /// are compared by whether they accept them. `nil`: requests are compared by their field values.
        let codings: ContentCodings?
    }

    let nominees: [Nominee]
    /// Whether requests are distinguished by whether they accept the codings of the response, although its `Vary` does
    /// not name `Accept-Encoding`. Among variants that match a request these have precedence: otherwise a variant
    /// without coding, which every client can decode, would hide them.
    public let isByCoding: Bool

    /// More members than this count as `*`. Each is compared with all others, and searched in each request.
    package static let maxMembers = 64

    /// A rule without nominees: every request matches.
    public static let none = VaryRule(nominees: [])

    private init(nominees: [Nominee]) {
        self.nominees = nominees
        isByCoding = nominees.contains { $0.codings != nil }
    }

    /// Reads every `Vary` line; `nil` if no request ever matches (§4.1): if a member is `*`, no field name, or a field
    /// with which the origin receives more than the client sent, or if there are more than `maxMembers`. Fields that
    /// are the same for all requests with one key are omitted.
    ///
    /// A response with `Content-Encoding` varies by `Accept-Encoding` whether `Vary` names it or not: by default nginx
    /// compresses without adding `Vary`. If `Vary` does not name it, the rule depends on the response's codings: all
    /// requests that accept them match each other, and any other request matches requests with the same field value.
    /// So a file with an encoding that no client accepts is stored, and yet an origin that takes `gzip;q=0` for a wish
    /// cannot give one client's gzip to all that accept none.
    /// - Parameter policy: its settings for codings and odd names are part of the rule, so that keys stay comparable
    ///   when the operator changes them.
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

    /// The nominee of a response with `Content-Encoding` whose `Vary` does not name `Accept-Encoding`.
    private static func acceptEncoding(_ fields: FieldView, _ policy: borrowing CachingPolicy) -> Nominee {
        Nominee(
            name: ByteSlice("accept-encoding"), field: .acceptEncoding, isCodingSet: policy.normalisesAcceptEncoding,
            countsAliases: policy.forwardsOddNames,
            codings: ContentCodings.scope(fields) == .codings ? ContentCodings(fields) : nil)
    }

    /// The fields by which a response varies, classified.
    enum Scope {
        /// None in which requests with one key differ.
        case nothing
        case fields
        /// `*`, or a member that cannot be a field name and so matches no request either, or too many members.
        case everything
        /// A field with which the origin receives more than the client sent.
        case more
    }

    static func scope(_ fields: FieldView, _ policy: borrowing CachingPolicy) -> Scope {
        var scope = Scope.nothing
        var count = 0
        var members = ListIterator(fields, .vary)
        while let member = members.next() {
            count += 1
            if count > maxMembers { return .everything }
            // `*` is a token character, but a field with this name does not exist.
            if !member.isTokenOnly || (member.count == 1 && member[0] == UInt8(ascii: "*")) { return .everything }
            switch policy.sight(of: member) {
            case .sameForAll: break
            case .asSent: if scope == .nothing { scope = .fields }
            case .more: scope = .more
            }
        }
        return scope == .nothing && ContentCodings.scope(fields) != .none ? .fields : scope
    }

    /// Whether no field is nominated.
    public var isEmpty: Bool { nominees.isEmpty }
    /// The number of nominated fields.
    public var count: Int { nominees.count }

    /// Whether responses with this rule and with `other` have the same codings, as far as requests are distinguished by
    /// codings that `Vary` does not name.
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
    /// Feeds `bytes` into the hasher, eight at a time.
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

/// The requests that a response may answer: the fields that its `Vary` nominates, with their values in the original
/// request (RFC 9111 §4.1). Usable on any thread.
public struct Variant: Hashable, Sendable {
    /// The nominated fields.
    public let rule: VaryRule
    /// The values of the request in these fields.
    public let key: VariantKey

    /// The variant of a response to the request with `fields`, where `Vary` is `rule`.
    public init(for fields: FieldView, under rule: VaryRule) {
        self.rule = rule
        key = VariantKey(fields, under: rule)
    }
}
