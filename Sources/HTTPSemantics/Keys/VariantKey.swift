package import Bytes

/// The values of one request in the fields that a `VaryRule` nominates: equal for requests that get the same variant.
///
/// Contains the names too, so that keys under different rules never compare equal. Usable on any thread.
public struct VariantKey: Sendable {
    /// For each nominee: its name, and the codings by which its requests are distinguished, if any; `present` and its
    /// normalised value, or `absent`; lines with aliases of it, if they count; then `end`. The marker bytes cannot
    /// occur in a name or a value. The same on all machines.
    package let bytes: ByteSlice

    private static let absent: UInt8 = 2, present: UInt8 = 1, end: UInt8 = 0, codings: UInt8 = 5
    /// The value of a request that accepts the nominee's codings.
    fileprivate static let accepts: UInt8 = 6

    /// The key under a rule that nominates no fields.
    public static let none = VariantKey(bytes: ByteSlice(""))

    private init(bytes: ByteSlice) { self.bytes = bytes }

    /// The key of the request with `fields` under `rule`.
    public init(_ fields: FieldView, under rule: VaryRule) {
        guard !rule.isEmpty else { self = .none; return }
        let buffer = ByteBuffer(capacity: 128)
        Self.append(fields, under: rule, to: buffer)
        bytes = buffer.copied()
    }

    /// The key under `rule` for requests that also match for sharing (`CachingPolicy.matchForSharing`); `nil` if no line
    /// distinguishes this request from others. Only fetches have such a key, never stored responses.
    public init?(_ fields: FieldView, under rule: VaryRule, tellingApartBy policy: borrowing CachingPolicy) {
        let buffer = ByteBuffer(capacity: 512)
        Self.append(fields, under: rule, to: buffer)
        let count = buffer.count
        policy.appendDistinguishing(fields, to: buffer)
        guard buffer.count > count else { return nil }
        bytes = buffer.copied()
    }

    private static func append(_ fields: FieldView, under rule: VaryRule, to buffer: ByteBuffer) {
        for nominee in rule.nominees {
            buffer.append(nominee.name)
            if let codings = nominee.codings {
                buffer.append(Self.codings)
                buffer.append(codings.names)
            }
            if let line = nominee.firstLine(in: fields) {
                buffer.append(Self.present)
                var value = NominatedValue(fields, of: nominee, from: line)
                while let byte = value.next() { buffer.append(byte) }
            } else {
                buffer.append(Self.absent)
            }
            if nominee.countsAliases { buffer.append(aliasesOf: nominee.name.span, in: fields) }
            buffer.append(Self.end)
        }
    }

    /// The number of bytes.
    public var count: Int { bytes.count }

    /// The key's hash; it differs between processes, so that clients cannot choose colliding keys.
    public var hash: UInt64 {
        var hash = StreamedHash()
        let bytes = bytes.span
        for index in 0..<bytes.count { hash.add(bytes[index]) }
        return hash.finish()
    }

    /// The hash of the key that the request with `fields` has under `rule`. Does not allocate, except if there are
    /// aliases.
    public static func hash(of fields: FieldView, under rule: VaryRule) -> UInt64 {
        var hash = StreamedHash()
        for nominee in rule.nominees {
            if nominee.countsAliases, fields.firstIndex(ofAliasOf: nominee.name.span) != nil {
                return VariantKey(fields, under: rule).hash
            }
            hash.add(nominee.name)
            if let codings = nominee.codings {
                hash.add(Self.codings)
                hash.add(codings.names)
            }
            if let line = nominee.firstLine(in: fields) {
                hash.add(Self.present)
                var value = NominatedValue(fields, of: nominee, from: line)
                while let byte = value.next() { hash.add(byte) }
            } else {
                hash.add(Self.absent)
            }
            hash.add(Self.end)
        }
        return hash.finish()
    }

    /// Whether the request with `fields` has this key under `rule`, with which the key was built. Does not allocate,
    /// except if there are aliases.
    public func matches(_ fields: FieldView, under rule: VaryRule) -> Bool {
        let stored = bytes.span
        var position = 0
        for nominee in rule.nominees {
            if nominee.countsAliases, fields.firstIndex(ofAliasOf: nominee.name.span) != nil {
                return self == VariantKey(fields, under: rule)
            }
            position += nominee.name.count
            if let codings = nominee.codings { position += 1 + codings.names.count }
            guard position < stored.count else { return false }
            let mark = stored[position]
            position += 1
            if let line = nominee.firstLine(in: fields) {
                guard mark == Self.present else { return false }
                var value = NominatedValue(fields, of: nominee, from: line)
                while let byte = value.next() {
                    guard position < stored.count, stored[position] == byte else { return false }
                    position += 1
                }
            } else {
                guard mark == Self.absent else { return false }
            }
            guard position < stored.count, stored[position] == Self.end else { return false }
            position += 1
        }
        return position == stored.count
    }
}

extension VariantKey: Hashable {
    public static func == (left: VariantKey, right: VariantKey) -> Bool { left.bytes == right.bytes }
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes.span) }
}

/// A hash of bytes that are added one at a time.
private struct StreamedHash {
    private var hasher = Hasher()
    private var word: UInt64 = 0
    private var count = 0

    mutating func add(_ byte: UInt8) {
        word = word << 8 | UInt64(byte)
        count &+= 1
        if count & 7 == 0 { hasher.combine(word) }
    }

    mutating func add(_ bytes: ByteSlice) {
        let bytes = bytes.span
        for index in 0..<bytes.count { add(bytes[index]) }
    }

    consuming func finish() -> UInt64 {
        hasher.combine(word)
        hasher.combine(count)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}

extension VaryRule.Nominee {
    func firstLine(in fields: FieldView) -> Int? { nextLine(in: fields, from: 0) }

    /// The origin does not receive fields that `Connection` nominates, so they do not select a variant.
    func nextLine(in fields: FieldView, from start: Int) -> Int? {
        let line =
            field == .other
            ? fields.firstIndex(named: name.span, from: start) : fields.firstIndex(of: field, from: start)
        guard let line, !fields.isNominated(lineAt: line) else { return nil }
        return line
    }
}

/// The bytes of one nominated field across its lines, joined and normalised, one at a time.
private struct NominatedValue: ~Escapable {
    /// How the bytes are normalised.
    private enum Form {
        /// Not known to be a list: commas and the white space around them are part of the value (RFC 9111 §4.1 permits
        /// only normalisation by the field's syntax). An origin may compare the value as a whole: an extra comma then
        /// makes another value, and the response is not for other requests. Lines are joined with a line feed, which
        /// cannot occur in a value.
        case verbatim
        /// A list: one comma between members, no white space around it, no empty members.
        case list
        /// A list that is case-insensitive.
        case caselessList
        /// The codings still to be written.
        case codings(CodingSet)
        /// The request accepts the codings of the response: one byte, which is still to be written.
        case accepts
        /// All bytes are written.
        case over
    }

    /// Fields that are case-sensitive lists (RFC 9110, RFC 9111).
    private static let lists: FieldSet = [
        FieldSet(.accept), FieldSet(.cacheControl), FieldSet(.pragma), FieldSet(.forwarded), FieldSet(.ifMatch),
        FieldSet(.ifNoneMatch), FieldSet(.cdnLoop),
    ]

    private let fields: FieldView
    private let nominee: VaryRule.Nominee
    private var form: Form
    private var line: Int?
    private var position = 0
    private var quoted = false
    private var escaped = false
    private var separatorIsDue = false
    private var hasWritten = false

    @_lifetime(copy fields)
    init(_ fields: FieldView, of nominee: VaryRule.Nominee, from line: Int) {
        self.fields = fields
        self.nominee = nominee
        self.line = line
        if let codings = nominee.codings, codings.areAccepted(by: fields) {
            form = .accepts
            return
        }
        if nominee.isCodingSet, let accepted = CodingSet(acceptedBy: fields) {
            form = .codings(accepted)
            return
        }
        form =
            switch nominee.field {
            case .acceptEncoding, .acceptLanguage: .caselessList
            case let field where Self.lists.contains(field): .list
            default: .verbatim
            }
    }

    mutating func next() -> UInt8? {
        switch form {
        case .codings(var rest):
            let byte = rest.popByte()
            form = .codings(rest)
            return byte
        case .accepts:
            form = .over
            return VariantKey.accepts
        case .over: return nil
        case .verbatim, .list, .caselessList: break
        }
        while let current = line {
            let value = fields.value(at: current)
            guard position < value.count else {
                line = nominee.nextLine(in: fields, from: current + 1)
                position = 0
                quoted = false
                if case .verbatim = form, line != nil { return 0x0a }
                separatorIsDue = line != nil
                continue
            }
            if isSkipped(value) { continue }
            if separatorIsDue, hasWritten {
                separatorIsDue = false
                return UInt8(ascii: ",")
            }
            return take(value[position])
        }
        return nil
    }

    /// Skips optional commas and white space of a list.
    private mutating func isSkipped(_ value: Span<UInt8>) -> Bool {
        if case .verbatim = form { return false }
        guard !quoted else { return false }
        if value[position] == UInt8(ascii: ",") {
            separatorIsDue = true
            position += 1
            return true
        }
        var behind = position
        while behind < value.count, value[behind] == 0x20 || value[behind] == 0x09 { behind += 1 }
        guard behind > position else { return false }
        let isAtEdge = separatorIsDue || !hasWritten || behind == value.count || value[behind] == UInt8(ascii: ",")
        if isAtEdge { position = behind }
        return isAtEdge
    }

    private mutating func take(_ byte: UInt8) -> UInt8 {
        separatorIsDue = false
        hasWritten = true
        position += 1
        if escaped {
            escaped = false
        } else if byte == UInt8(ascii: "\"") {
            quoted.toggle()
        } else if quoted, byte == UInt8(ascii: "\\") {
            escaped = true
        }
        if case .caselessList = form { return byte.lowercasedASCII }
        return byte
    }
}
