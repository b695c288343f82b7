import Bytes

/// The options of a message's `Connection` field (RFC 9110 §7.6.1).
public struct ConnectionOptions: Sendable, Hashable {
    /// Whether each option with a meaning of its own is present (RFC 9110 §7.6.1, §7.8; RFC 9112 §9.3).
    public private(set) var close = false
    public private(set) var keepAlive = false
    public private(set) var upgrade = false
    /// The known fields that `Connection` nominates: they are for this connection only.
    public private(set) var nominated: FieldSet = []
    /// Whether `Connection` nominates fields without a `KnownField`; `nominates` compares their names.
    private(set) var nominatesOthers = false

    /// No options.
    public init() {}

    /// Reads all lines of `Connection`.
    /// - Throws: if a member is no token, since the fields meant for this hop would be unknown; or if there are too
    ///   many members (`FieldNameBound`), since each is compared with each line that is forwarded or stored.
    public init(_ fields: FieldView) throws(MessageSyntaxError) {
        guard fields.contains(.connection) else { return }
        let position = fields.position(of: .connection)
        if let only = fields.onlyValue(of: .connection), only.isEqualIgnoringCase(to: "keep-alive") {
            // The usual value, if a client sends `Connection` at all.
            keepAlive = true
            return
        }
        var (lines, bound) = (LineIterator(fields, .connection), FieldNameBound())
        while let value = lines.next() {
            guard bound.takes(value) else { throw MessageSyntaxError(.tooManyConnectionOptions, at: position) }
        }
        var options = ListIterator(fields, .connection)
        while let option = options.next() {
            guard option.isTokenOnly else { throw MessageSyntaxError(.connectionOptionInvalid, at: position) }
            if option.isEqualIgnoringCase(to: "close") {
                close = true
            } else if option.isEqualIgnoringCase(to: "keep-alive") {
                keepAlive = true
            } else {
                let field = KnownField.recognise(option)
                if field == .upgrade { upgrade = true }
                if field == .other { nominatesOthers = true } else { nominated.insert(field) }
            }
        }
    }

    /// Whether this message lets the connection persist after the exchange (RFC 9112 §9.3).
    ///
    /// A gateway is an origin server to its clients (RFC 9110 §3.7), so HTTP/1.0's `keep-alive` is honoured.
    public func persists(_ version: HTTPVersion) -> Bool {
        !close && (version == .http11 || keepAlive)
    }

    /// Whether `Connection` nominates the line at `index` of `fields`; these options were read from the same `fields`.
    public func nominates(_ index: Int, of fields: FieldView) -> Bool {
        let field = fields.lines[index].field
        guard field == .other else { return nominated.contains(field) }
        return nominatesOthers && fields.isNominated(lineAt: index)
    }
}
