public import Bytes

/// Writes the head of a request to an origin from the head that a client sent (RFC 9110 §7.6). Holds immutable settings
/// in an object, so that a request copies none of them.
public final class RequestForwarding: Sendable {
    /// How `X-Forwarded-*` fields from clients are handled.
    public enum ClientFields: Sendable {
        /// The peer's address is appended to `X-Forwarded-For`, if it has one. This proxy writes `X-Forwarded-Proto`
        /// and `-Host` from its own knowledge; `Forwarded` (RFC 7239) and the like are not forwarded
        /// (`KeyedForwarding`).
        case append
        /// Received fields are forwarded unchanged, and none is added. Exception: with `trustsProxies`, a received
        /// `X-Forwarded-Proto` that is not in the key is replaced by the scheme in the key.
        case off
    }

    /// The differences between the received head and the one sent, which vary from request to request.
    public struct Changes: ~Copyable, Sendable {
        /// Replaces the received method, if not `nil`; a fetch for HEAD may be a GET.
        public var method: Method?
        /// The framing of the body that will be sent.
        public var framing: MessageFraming
        /// Fields not to forward, in addition to the fields that `write` always drops: conditionals and ranges that the
        /// cache replaces, `Expect`, …
        public var dropping: FieldSet
        /// The fields that a client may set, since they are part of the cache key.
        public var keyed: KeyedForwarding
        /// Whether the fields that state the sender are to be believed.
        public var isFromTrustedProxy: Bool
        /// The value of `Host`, if it differs from the requested host.
        public var host: ByteSlice?
        /// Whether `Upgrade` is forwarded.
        public var isUpgrading: Bool
        /// Whether to send `TE: trailers` if the client sent it; only for a caller that forwards trailers.
        public var acceptsTrailers: Bool

        /// - Parameters: `method` replaces the request's own; `dropping` holds fields not to forward; `keyed` the
        ///   fields in the key; `isFromTrustedProxy` tells whether the request may state its sender; `host` replaces
        ///   the requested host in `Host`.
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

    /// This proxy's name in `Via` (RFC 9110 §7.6.3); with `nil`, received `Via` lines are forwarded and none is added.
    public let via: ByteSlice?
    public let clientFields: ClientFields
    /// Whether fields are forwarded whose names hold other bytes than letters, digits and hyphens.
    public let forwardsOddNames: Bool
    /// Whether a trusted proxy may state the scheme, which may then be https.
    public let trustsProxies: Bool
    /// The value of `Host` if an HTTP/1.0 client sent none.
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

    /// Appends the head up to its empty line, which the caller appends after any further field lines of its own.
    ///
    /// `head` and `fields` are the received ones, `host` is their host as normalized for the cache key (RFC 9110
    /// §4.2.3): the received spelling could appear in links that other clients get. `clientAddress` is the peer's IP
    /// address and is sent unchanged: empty for a peer on a Unix socket, whose path may hold any bytes. `scheme` is the
    /// scheme of the received request.
    /// - Returns: whether the request has lines that may not be forwarded unchanged: `removal` gives the reason for
    ///   each.
    @discardableResult
    public func write(
        _ head: RequestHead, _ fields: FieldView, _ changes: borrowing Changes, host: Span<UInt8>,
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

    private func keepsMethod(_ head: RequestHead, _ changes: borrowing Changes) -> Bool {
        let method = changes.method ?? head.method
        return method != .get && method != .head
    }

    /// Known fields of that kind that are not forwarded, or only with this proxy's value.
    private func replaced(_ keyed: FieldSet) -> FieldSet {
        switch clientFields {
        case .off: trustsProxies && !keyed.contains(.xForwardedProto) ? FieldSet(.xForwardedProto) : []
        case .append: KeyedForwarding.known.subtracting(keyed)
        }
    }

    /// Why the line at `index` is not forwarded; `nil` if it is, if it is hop-by-hop, or if the line written in its
    /// place has an equal value. Not for the hot path. The arguments are the same as for `write`.
    public func removal(
        ofLineAt index: Int, of fields: FieldView, _ head: RequestHead, _ changes: borrowing Changes, host: Span<UInt8>,
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
        // `scheme` was taken from the trusted proxy's field.
        case .xForwardedProto:
            return changes.isFromTrustedProxy || value.isEqualIgnoringCase(to: scheme) ? nil : .untrusted
        case .xForwardedHost: return value.isEqualIgnoringCase(to: host) ? nil : .notInKey
        default: return .notInKey
        }
    }

    /// `method SP origin-form SP HTTP/1.1`: path and query stay unchanged (RFC 9110 §7.7).
    private func appendRequestLine(
        _ head: RequestHead, _ fields: FieldView, _ changes: borrowing Changes, to buffer: ByteBuffer
    ) {
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
            // Without an address to append, the received lines are forwarded: no empty members (RFC 9110 §5.6.1).
            if addsAddress { written.insert(.xForwardedFor) }
        }
        if via != nil { written.insert(.via) }
        return written
    }

    private static let alwaysWritten = FieldSet(.host) | .contentLength | .transferEncoding

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

    /// This proxy's own connection options (RFC 9110 §7.6.1, §7.8, §10.1.4).
    private func appendConnection(
        _ head: RequestHead, _ fields: FieldView, _ changes: borrowing Changes, to buffer: ByteBuffer
    ) {
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

    /// `Max-Forwards` as a number, at most the largest that is supported here (RFC 9110 §7.6.2); `nil` if it is absent
    /// or not a number.
    public var maxForwards: Int? {
        onlyValue(of: .maxForwards)?.decimal(saturatingAt: UInt64(Int32.max)).map { Int($0) }
    }
}
