public import Bytes

extension FieldSet {
    /// Fields for one connection only, nominated or not (RFC 9110 §7.6.1; RFC 7540 §3.2.1).
    static let hopByHop =
        FieldSet(.connection) | .keepAlive | .proxyConnection | .te | .transferEncoding | .upgrade | .http2Settings
    /// The caller that frames the message writes these.
    public static let framing = FieldSet(.contentLength) | .transferEncoding
}

extension ByteBuffer {
    /// Appends the lines of `fields` unchanged and in their order, without hop-by-hop fields and the fields in
    /// `dropping`: the fields of a stored or forwarded response, or of a request.
    ///
    /// `connection` holds the options of these fields' `Connection`. With `keyed`, fields in which the client describes
    /// its request (`KeyedForwarding`) are dropped unless they are in `keyed`; `keepsMethod` keeps fields that override
    /// the method, and `keepsSender` fields that state the sender. `plainNamesOnly`: drops names with other bytes than
    /// letters, digits and hyphens. One pass; neighbouring lines are copied together.
    /// - Returns: whether a line was dropped because of `keyed` or `plainNamesOnly`.
    @discardableResult
    public func appendFields(
        _ fields: FieldView, connection: ConnectionOptions, dropping: FieldSet = [],
        unlessIn keyed: KeyedForwarding? = nil,
        keepsMethod: Bool = true, keepsSender: Bool = true, plainNamesOnly: Bool = false
    ) -> Bool {
        var dropsMore = false
        let dropped = dropping.union(.hopByHop).union(connection.nominated)
        // The run of lines kept so far and not yet copied.
        var start = 0
        var end = 0
        for index in 0..<fields.lines.count {
            let line = fields.lines[index]
            if line.field != .other {
                if dropped.contains(line.field) { continue }
            } else if connection.nominates(index, of: fields) {
                continue
            } else if plainNamesOnly && !fields.name(at: index).isPlainName
                || keyed?.drops(fields.name(at: index), keepsMethod: keepsMethod, keepsSender: keepsSender) ?? false
            {
                dropsMore = true
                continue
            }
            let lower = Int(line.name.lower)
            if start == end || lower != end + 2 || !fields.bytes.isLineEnd(at: end) {
                appendRun(fields.bytes.extracting(start..<end))
                start = lower
            }
            end = Int(line.value.upper)
        }
        appendRun(fields.bytes.extracting(start..<end))
        return dropsMore
    }

    private func appendRun(_ run: Span<UInt8>) {
        guard !run.isEmpty else { return }
        append(run)
        appendLineEnd()
    }

    /// Appends `Via` with this proxy's hop after the received hops in `fields` (RFC 9110 §7.6.3). The caller drops
    /// `via` from the copied fields.
    func appendVia(
        _ received: HTTPVersion, _ name: ByteSlice, after fields: FieldView, connection: ConnectionOptions
    ) {
        appendName("Via")
        appendMembers(.via, of: fields, connection)
        append(received.shortName)
        append(UInt8(ascii: " "))
        append(name)
        appendLineEnd()
    }

    /// Appends the values of `field`, each with a comma after it; none if `connection` nominates the field.
    func appendMembers(_ field: KnownField, of fields: FieldView, _ connection: ConnectionOptions) {
        guard !connection.nominated.contains(field) else { return }
        var lines = LineIterator(fields, field)
        while let value = lines.next() {
            if value.isEmpty { continue }
            append(value)
            append(", ")
        }
    }
}

extension Span where Element == UInt8 {
    fileprivate func isLineEnd(at index: Int) -> Bool {
        index + 1 < count && self[index] == 0x0d && self[index + 1] == 0x0a
    }
}
