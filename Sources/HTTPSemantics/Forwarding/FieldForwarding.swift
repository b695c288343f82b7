public import Bytes

extension FieldSet {
    /// Fields for one connection only, nominated or not (RFC 9110 §7.6.1; RFC 7540 §3.2.1).
    static let hopByHop = FieldSet(
        .connection, .keepAlive, .proxyConnection, .te, .transferEncoding, .upgrade, .http2Settings)
    /// Written anew by whoever frames the message.
    public static let framing = FieldSet(.contentLength, .transferEncoding)
}

extension ByteBuffer {
    /// Appends the lines of `fields` as they were received and in their order, without those that belong to one
    /// connection and those in `dropping`: a stored or forwarded response's fields, or a request's.
    ///
    /// `connection` is what these fields' `Connection` says. `keyed`: drops what a client says of how its request came,
    /// unless it is in there, of its method, unless `keepsMethod`, and of who sent it, unless `keepsSender`.
    /// `plainNamesOnly`: drops names with other bytes than letters, digits and hyphens. One pass; neighbouring lines
    /// are copied together.
    /// - Returns: whether one of the latter was dropped, or something that `keyed` is about.
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

    /// `Via` with our hop after those that `fields` names (RFC 9110 §7.6.3). Drop `via` from the copied fields.
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

    /// The values of `field` that are for the next recipient, each with a comma after it.
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
