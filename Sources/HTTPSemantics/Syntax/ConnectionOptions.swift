import Bytes

/// What `Connection` says (RFC 9110 §7.6.1).
public struct ConnectionOptions: Sendable, Hashable {
    /// Which of the options with a meaning of their own are there (RFC 9110 §7.6.1, §7.8; RFC 9112 §9.3).
    public private(set) var close = false
    public private(set) var keepAlive = false
    public private(set) var upgrade = false
    /// The known fields it nominates: they are for this connection only.
    public private(set) var nominated: FieldSet = []
    /// Whether it nominates fields that are not known; `nominates` compares their names.
    private(set) var nominatesOthers = false

    /// Nothing nominated.
    public init() {}

    /// Reads all lines of `Connection`.
    /// - Throws: where a member is no token, or there are too many (`FieldNameBound`): which fields are meant for us
    ///   alone could not be known, or only at a cost, since each is compared with each line that goes on or is stored.
    public init(_ fields: FieldView) throws(MessageSyntaxError) {
        guard fields.contains(.connection) else { return }
        let position = fields.position(of: .connection)
        if let only = fields.onlyValue(of: .connection), only.isEqualIgnoringCase(to: "keep-alive") {
            // What nearly every client sends, if it sends any.
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

    /// Whether the connection outlives the exchange as far as this message goes (RFC 9112 §9.3).
    ///
    /// A gateway is an origin server to its clients (RFC 9110 §3.7), so HTTP/1.0's `keep-alive` is honoured.
    public func persists(_ version: HTTPVersion) -> Bool {
        !close && (version == .http11 || keepAlive)
    }

    /// Whether the line at `index` of `fields`, from which these options were read, is nominated.
    public func nominates(_ index: Int, of fields: FieldView) -> Bool {
        let field = fields.lines[index].field
        guard field == .other else { return nominated.contains(field) }
        return nominatesOthers && fields.isNominated(lineAt: index)
    }
}
