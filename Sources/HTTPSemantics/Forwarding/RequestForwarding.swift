public import Bytes

/// Writes the head of a request to an origin from the one a client sent (RFC 9110 §7.6). Immutable settings, and an
/// object, so that nothing of them is copied for a request.
public final class RequestForwarding: Sendable {
    /// What becomes of the `X-Forwarded-*` fields that a client sends.
    public enum ClientFields: Sendable {
        /// Our client's address is appended to `X-Forwarded-For`, if it has one. `X-Forwarded-Proto` and `-Host` say
        /// what we know ourselves; `Forwarded` (RFC 7239) and the like go no further (`KeyedForwarding`).
        case append
        /// Forwarded as they are, and none written: but the scheme that stands in the key in place of an
        /// `X-Forwarded-Proto`, where some proxies are believed and others are not.
        case off
    }

    /// What differs from request to request, and how the head that is sent differs from the one that came.
    public struct Changes: Sendable {
        /// Instead of the received method, if not `nil`; a fetch for HEAD may be a GET.
        public var method: Method?
        /// The framing of the body that will be sent.
        public var framing: MessageFraming
        /// Not forwarded, beyond what never is: conditionals and ranges that the cache replaces, `Expect`, …
        public var dropping: FieldSet
        /// What a client may say, since it is part of the cache key.
        public var keyed: KeyedForwarding
        /// Whether what the request says of who sent it is to be believed.
        public var isFromTrustedProxy: Bool
        /// What `Host` says, if not the host that was asked for.
        public var host: ByteSlice?
        /// Whether `Upgrade` is forwarded.
        public var isUpgrading: Bool
        /// Whether `TE: trailers` is said if the client said it; only for who forwards trailers.
        public var acceptsTrailers: Bool

        /// - Parameters: `method` is what is sent in place of the request's own; `dropping` fields that are not to go
        ///   on; `keyed` those that are part of the key; `isFromTrustedProxy` whether it may say who sent it; `host`
        ///   stands in `Host` in place of the host that was asked for.
        public init(
            method: Method? = nil, framing: MessageFraming, dropping: FieldSet = [], keyed: KeyedForwarding,
            isFromTrustedProxy: Bool = false, host: ByteSlice? = nil, isUpgrading: Bool = false,
            acceptsTrailers: Bool = false
        ) {
            self.method = method
            self.framing = framing
            self.dropping = dropping
            self.keyed = keyed
            self.isFromTrustedProxy = isFromTrustedProxy
            self.host = host
            self.isUpgrading = isUpgrading
            self.acceptsTrailers = acceptsTrailers
        }
    }

    /// Our name in `Via` (RFC 9110 §7.6.3); `nil` writes none and forwards what came.
    public let via: ByteSlice?
    public let clientFields: ClientFields
    /// Whether fields go on whose names hold other bytes than letters, digits and hyphens.
    public let forwardsOddNames: Bool
    /// Whether the scheme is what a trusted proxy said, and so may be https.
    public let trustsProxies: Bool
    /// `Host` where an HTTP/1.0 client sent none.
    public let defaultHost: ByteSlice

    public init(
        via: ByteSlice?, clientFields: ClientFields, forwardsOddNames: Bool = false, trustsProxies: Bool = false,
        defaultHost: ByteSlice
    ) {
        self.via = via
        self.trustsProxies = trustsProxies
        self.clientFields = clientFields
        self.forwardsOddNames = forwardsOddNames
        self.defaultHost = defaultHost
    }

    /// Appends the head up to its empty line, which the caller appends, after any further field lines of its own.
    ///
    /// `head` and `fields` are the received ones, `host` is theirs as the cache key has it (RFC 9110 §4.2.3): how one
    /// client spells it, others would get in links. `clientAddress` is the peer's IP address and goes out as it is:
    /// empty for a peer on a Unix socket, whose path is any bytes it likes. `scheme` is how it came.
    /// - Returns: whether the request has lines that may not go on as they are: `removal` tells which and why.
    @discardableResult
    public func write(
        _ head: RequestHead, _ fields: FieldView, _ changes: Changes, host: Span<UInt8>,
        clientAddress: Span<UInt8>, scheme: StaticString, to buffer: ByteBuffer
    ) -> Bool {
        appendRequestLine(head, fields, changes, to: buffer)
        let defaultHost = defaultHost
        let host = host.isEmpty ? defaultHost.span : host
        if let other = changes.host { buffer.appendField("Host", other.span) } else { buffer.appendField("Host", host) }
        let written = fieldsWrittenHere(changes.keyed.fields, addsAddress: !clientAddress.isEmpty).union(
            changes.dropping)
        let dropsMore = buffer.appendFields(
            fields, connection: head.connection, dropping: written,
            unlessIn: clientFields == .append ? changes.keyed : nil,
            keepsMethod: keepsMethod(head, changes), keepsSender: changes.isFromTrustedProxy,
            plainNamesOnly: !forwardsOddNames)
        appendClientFields(fields, head.connection, changes.keyed.fields, host, clientAddress, scheme, to: buffer)
        if let via { buffer.appendVia(head.version, via, after: fields, connection: head.connection) }
        appendConnection(head, fields, changes, to: buffer)
        buffer.appendFraming(changes.framing)
        return dropsMore || !fields.present.isDisjoint(with: replaced(changes.keyed.fields))
    }

    private func keepsMethod(_ head: RequestHead, _ changes: Changes) -> Bool {
        let method = changes.method ?? head.method
        return method != .get && method != .head
    }

    /// Known fields with the client's word that do not go on, or only as we say it.
    private func replaced(_ keyed: FieldSet) -> FieldSet {
        switch clientFields {
        case .off: trustsProxies && !keyed.contains(.xForwardedProto) ? FieldSet(.xForwardedProto) : []
        case .append: KeyedForwarding.known.subtracting(keyed)
        }
    }

    /// Why the line at `index` does not go on; `nil` if it does, if it is for one connection, or if what is written in
    /// its place says the same. Not for the hot path. The arguments are those of `write`.
    public func removal(
        ofLineAt index: Int, of fields: FieldView, _ head: RequestHead, _ changes: Changes, host: Span<UInt8>,
        scheme: StaticString
    ) -> RemovedField.Reason? {
        let (field, name, value) = (fields.lines[index].field, fields.name(at: index), fields.value(at: index))
        if field == .other {
            if head.connection.nominates(index, of: fields) { return nil }
            if !forwardsOddNames, !name.isPlainName { return .oddName }
            guard clientFields == .append,
                changes.keyed.drops(
                    name, keepsMethod: keepsMethod(head, changes), keepsSender: changes.isFromTrustedProxy)
            else { return nil }
            return KeyedForwarding.reason(toDrop: name)
        }
        guard replaced(changes.keyed.fields).contains(field), !head.connection.nominated.contains(field) else {
            return nil
        }
        switch field {
        // A trusted proxy's word is what the scheme was taken from.
        case .xForwardedProto:
            return changes.isFromTrustedProxy || value.isEqualIgnoringCase(to: scheme) ? nil : .untrusted
        case .xForwardedHost: return value.isEqualIgnoringCase(to: host) ? nil : .notInKey
        default: return .notInKey
        }
    }

    /// `method SP origin-form SP HTTP/1.1`: path and query stay as they are (RFC 9110 §7.7).
    private func appendRequestLine(_ head: RequestHead, _ fields: FieldView, _ changes: Changes, to buffer: ByteBuffer)
    {
        let bytes = fields.bytes
        if let method = changes.method, method.isNamed {
            buffer.append(method.wireName)
        } else {
            buffer.append(bytes.extracting(head.methodRange.range))
        }
        buffer.append(UInt8(ascii: " "))
        let target = head.target
        switch target.form {
        case .origin, .asterisk, .authority:
            buffer.append(bytes.extracting(target.whole.range))
        case .absolute:
            // An empty path becomes `/`, or `*` for OPTIONS (RFC 9112 §3.2.1, §3.2.4).
            if target.path.count > 0 {
                buffer.append(bytes.extracting(target.path.range))
            } else {
                buffer.append(head.method == .options && !target.hasQuery ? "*" : "/")
            }
            if target.hasQuery {
                buffer.append(UInt8(ascii: "?"))
                buffer.append(bytes.extracting(target.query.range))
            }
        }
        buffer.append(" HTTP/1.1\r\n")
    }

    private func fieldsWrittenHere(_ keyed: FieldSet, addsAddress: Bool) -> FieldSet {
        var written = Self.alwaysWritten
        switch clientFields {
        case .off:
            if trustsProxies, !keyed.contains(.xForwardedProto) { written.insert(.xForwardedProto) }
        case .append:
            written.formUnion(KeyedForwarding.known.subtracting(keyed))
            // With nothing to add, what came goes on as it is: no empty members (RFC 9110 §5.6.1).
            if addsAddress { written.insert(.xForwardedFor) }
        }
        if via != nil { written.insert(.via) }
        return written
    }

    private static let alwaysWritten = FieldSet(.host, .contentLength, .transferEncoding)

    private func appendClientFields(
        _ fields: FieldView, _ connection: ConnectionOptions, _ keyed: FieldSet, _ host: Span<UInt8>,
        _ address: Span<UInt8>, _ scheme: StaticString, to buffer: ByteBuffer
    ) {
        switch clientFields {
        case .off:
            if trustsProxies, fields.present.contains(.xForwardedProto), !keyed.contains(.xForwardedProto) {
                buffer.appendField("X-Forwarded-Proto", scheme)
            }
        case .append:
            if !address.isEmpty {
                buffer.appendName(KnownField.xForwardedFor.wireName)
                buffer.appendMembers(.xForwardedFor, of: fields, connection)
                buffer.append(address)
                buffer.appendLineEnd()
            }
            let kept = fields.present.intersection(keyed).subtracting(connection.nominated)
            if !kept.contains(.xForwardedProto) { buffer.appendField("X-Forwarded-Proto", scheme) }
            if !kept.contains(.xForwardedHost) { buffer.appendField("X-Forwarded-Host", host) }
        }
    }

    /// Our own connection options (RFC 9110 §7.6.1, §7.8, §10.1.4).
    private func appendConnection(_ head: RequestHead, _ fields: FieldView, _ changes: Changes, to buffer: ByteBuffer) {
        if changes.isUpgrading, head.asksForUpgrade {
            buffer.append("Connection: Upgrade\r\n")
            var lines = LineIterator(fields, .upgrade)
            while let value = lines.next() { buffer.appendField("Upgrade", value) }
        }
        if changes.acceptsTrailers, fields.saysTrailers { buffer.append("Connection: TE\r\nTE: trailers\r\n") }
    }
}

extension FieldView {
    /// Whether `TE` holds `trailers` (RFC 9110 §10.1.4).
    public var saysTrailers: Bool {
        guard contains(.te) else { return false }
        var members = ListIterator(self, .te)
        while let member = members.next() {
            if member.isEqualIgnoringCase(to: "trailers") { return true }
        }
        return false
    }

    /// `Max-Forwards` as a number, or the largest that is supported here (RFC 9110 §7.6.2); `nil` if there is none or
    /// it is no number.
    public var maxForwards: Int? {
        onlyValue(of: .maxForwards)?.decimal(saturatingAt: UInt64(Int32.max)).map { Int($0) }
    }
}
