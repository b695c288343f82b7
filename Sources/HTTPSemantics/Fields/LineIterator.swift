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
