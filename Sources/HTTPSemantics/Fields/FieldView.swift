public import Bytes

/// The fields of one message, read in place: in a connection's read buffer or in an owned `HeadBlock`.
///
/// All rules take this view, so that they are independent of the head's storage and do not allocate. Lines keep the
/// order and the bytes of the message; a name may occur more than once.
public struct FieldView: ~Escapable {
    /// The head's bytes; the ranges in `lines` are offsets into them.
    public let bytes: Span<UInt8>
    public let lines: Span<FieldLine>
    /// The known fields that occur at least once. Excludes `Upgrade` in a request that must ignore it.
    public let present: FieldSet

    @inlinable
    @_lifetime(copy bytes, copy lines)
    public init(bytes: Span<UInt8>, lines: Span<FieldLine>, present: FieldSet) {
        self.bytes = bytes
        self.lines = lines
        self.present = present
    }

    /// The name of the line at `index` as it was sent.
    @inlinable
    @_lifetime(copy self)
    public func name(at index: Int) -> Span<UInt8> { bytes.extracting(lines[index].name.range) }

    /// The value of the line at `index`, without the white space around it.
    @inlinable
    @_lifetime(copy self)
    public func value(at index: Int) -> Span<UInt8> { bytes.extracting(lines[index].value.range) }

    /// Whether there is a line of `field`. One bit test.
    @inlinable
    public func contains(_ field: KnownField) -> Bool { present.contains(field) }

    /// The index of the first line of `field` at or after `start`. Loop with it to see every line of a field.
    @inlinable
    public func firstIndex(of field: KnownField, from start: Int = 0) -> Int? {
        guard present.contains(field) else { return nil }
        var index = start
        while index < lines.count {
            if lines[index].field == field { return index }
            index &+= 1
        }
        return nil
    }

    /// The value of the first line of `field`.
    @inlinable
    @_lifetime(copy self)
    public func firstValue(of field: KnownField) -> Span<UInt8>? {
        guard let line = firstIndex(of: field) else { return nil }
        return value(at: line)
    }

    /// The value of the only line of `field`; `nil` if there is no line or more than one.
    @inlinable
    @_lifetime(copy self)
    public func onlyValue(of field: KnownField) -> Span<UInt8>? {
        guard let line = firstIndex(of: field), firstIndex(of: field, from: line &+ 1) == nil else { return nil }
        return value(at: line)
    }

    /// The index of the first line whose name is `name`, in any case, at or after `start`.
    @inlinable
    public func firstIndex(named name: Span<UInt8>, from start: Int = 0) -> Int? {
        var index = start
        while index < lines.count {
            if self.name(at: index).isEqualIgnoringCase(to: name) { return index }
            index &+= 1
        }
        return nil
    }

}

extension FieldView {
    /// Whether `Connection` nominates the line at `index`: then the line is for this hop only (RFC 9110 §7.6.1). Walks
    /// all options; `ConnectionOptions` bounds their number when the message is parsed.
    func isNominated(lineAt index: Int) -> Bool {
        guard contains(.connection) else { return false }
        var options = ListIterator(self, .connection)
        while let option = options.next() {
            if option.isEqualIgnoringCase(to: name(at: index)) { return true }
        }
        return false
    }
}
