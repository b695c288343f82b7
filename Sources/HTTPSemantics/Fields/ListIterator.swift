public import Bytes

/// How commas in a list are interpreted.
public enum ListQuoting: Sendable {
    /// Every comma separates: lists of tokens, like `Connection`. An unpaired quote hides no member.
    case none
    /// Commas in a quoted-string (RFC 9110 §5.6.4) do not separate: `Cache-Control`, `If-None-Match`.
    case quotedStrings
}

/// The members of one comma-separated value (RFC 9110 §5.6.1), without white space around them and without empty
/// members (§5.6.1.2).
public struct MemberIterator: ~Escapable {
    @usableFromInline let value: Span<UInt8>
    @usableFromInline let quoting: ListQuoting
    @usableFromInline var position = 0

    /// - Parameter value: the value of one field line.
    @inlinable
    @_lifetime(copy value)
    public init(_ value: Span<UInt8>, quoting: ListQuoting = .none) {
        self.value = value
        self.quoting = quoting
    }

    /// The next member; `nil` after the last.
    @inlinable
    @_lifetime(copy self)
    public mutating func next() -> Span<UInt8>? {
        while position < value.count {
            let member = value.extracting(position..<end()).trimmingOptionalWhitespace()
            position &+= 1
            if !member.isEmpty { return member }
        }
        return nil
    }

    /// Moves to the comma that ends the member at `position`, or to the end of the value.
    @usableFromInline
    mutating func end() -> Int {
        var quoted = false
        while position < value.count {
            switch value[position] {
            case UInt8(ascii: ",") where !quoted: return position
            case UInt8(ascii: "\"") where quoting == .quotedStrings: quoted.toggle()
            case UInt8(ascii: "\\") where quoted: position = min(position &+ 1, value.count &- 1)
            default: break
            }
            position &+= 1
        }
        return position
    }
}

/// The members of a list field across all its lines, in order (RFC 9110 §5.3). Does not allocate.
///
///     var options = ListIterator(fields, .connection)
///     while let option = options.next() { … }
public struct ListIterator: ~Escapable {
    @usableFromInline var lines: LineIterator
    @usableFromInline var members: MemberIterator

    /// - Parameter field: a list field (RFC 9110 §5.6.1).
    @inlinable
    @_lifetime(copy fields)
    public init(_ fields: FieldView, _ field: KnownField, quoting: ListQuoting = .none) {
        lines = LineIterator(fields, field)
        members = MemberIterator(fields.bytes.extracting(0..<0), quoting: quoting)
    }

    /// The next member; `nil` after the last.
    @inlinable
    @_lifetime(copy self)
    public mutating func next() -> Span<UInt8>? {
        while true {
            if let member = members.next() { return member }
            guard let line = lines.next() else { return nil }
            members = MemberIterator(line, quoting: members.quoting)
        }
    }
}

/// The values of a field, line by line in their order (RFC 9110 §5.3). Does not allocate.
///
///     var lines = LineIterator(fields, .cookie)
///     while let value = lines.next() { … }
public struct LineIterator: ~Escapable {
    @usableFromInline let fields: FieldView
    @usableFromInline let field: KnownField
    /// The index of the first unread line.
    @usableFromInline var position = 0

    @inlinable
    @_lifetime(copy fields)
    public init(_ fields: FieldView, _ field: KnownField) {
        self.fields = fields
        self.field = field
    }

    /// The next value; `nil` after the last.
    @inlinable
    @_lifetime(copy self)
    public mutating func next() -> Span<UInt8>? {
        guard let line = fields.firstIndex(of: field, from: position) else { return nil }
        position = line &+ 1
        return fields.value(at: line)
    }
}
