import Bytes

/// Defines which requests for one URL match for sharing: requests that are equal in every field by which an origin may
/// have selected its response. Used for responses whose origin does not allow reuse explicitly
/// (`ResponseFacts.Flags.separatesRequests`): such an origin may select by a field of its own (`X-Api-Key`,
/// `X-Requested-With`) or by `Accept` without sending `Vary`.
///
/// All fields distinguish requests, except the fields listed here: fields that differ between visitors without
/// selecting another response, and fields with rules of their own.
extension CachingPolicy {
    /// Whether `one` and `other` have the same distinguishing lines in the same order: names in any case, values byte
    /// for byte. In `Accept-Encoding`, an equal set of codings suffices. Does not allocate.
    public func matchForSharing(_ one: FieldView, _ other: FieldView) -> Bool {
        var (own, others) = (DistinguishingLines(one), DistinguishingLines(other))
        while true {
            let (line, counterpart) = (own.next(under: self), others.next(under: self))
            guard let line, let counterpart else {
                return line == nil && counterpart == nil && Self.acceptSameCodings(one, other)
            }
            guard one.name(at: line).isEqualIgnoringCase(to: other.name(at: counterpart)),
                one.value(at: line).isEqual(to: other.value(at: counterpart))
            else { return false }
        }
    }

    /// Whether a request has distinguishing lines that most visitors of a page do not share: any but `Accept`,
    /// `Accept-Language` and `Accept-Encoding`. If so, the caller should remember that other requests may get another
    /// response.
    public func isPersonalized(_ request: FieldView) -> Bool {
        var lines = DistinguishingLines(request)
        while let line = lines.next(under: self) {
            let field = request.lines[line].field
            if field != .accept, field != .acceptLanguage { return true }
        }
        return false
    }

    /// Whether a line of this field distinguishes requests.
    fileprivate func isTelling(_ field: KnownField, _ name: Span<UInt8>) -> Bool {
        guard field == .other else { return !Self.indifferent.contains(field) && sight(of: name) != .sameForAll }
        // Excludes fields that the origin receives unchanged for all requests with one key, or not at all.
        return !Self.isIndifferent(name) && !KeyedForwarding.namesSender(name) && sight(of: name) != .sameForAll
    }

    /// Known fields that do not distinguish requests. The last two lines hold fields with rules of their own, which
    /// decide on sharing; codings are compared as a set. A field that is missing here costs a fetch; a list of the
    /// fields that do distinguish would show a page to the wrong client where it is incomplete. `User-Agent` is here,
    /// since browsers would otherwise share next to nothing; `Accept` and `Accept-Language` are not, since many sites
    /// negotiate without `Vary`.
    private static let indifferent: FieldSet = [
        FieldSet(.host) | .connection | .keepAlive | .proxyConnection | .http2Settings | .te | .trailer | .upgrade,
        FieldSet(.contentLength) | .transferEncoding | .expect | .age | .date,
        FieldSet(.via) | .cdnLoop | .forwarded | .xForwardedFor | .xRequestID | .userAgent | .referer,
        FieldSet(.cacheControl) | .pragma | .authorization | .acceptEncoding,
        FieldSet(.range) | .ifRange | .ifMatch | .ifNoneMatch | .ifModifiedSince | .ifUnmodifiedSince,
    ]

    /// Whether `name` is another field that does not distinguish requests: browsers' descriptions of themselves and of
    /// the navigation (`Sec-…`, client hints), and additions of tracing, gateways and CDNs to each request.
    /// `KeyedForwarding` covers fields with the client's address.
    private static func isIndifferent(_ name: Span<UInt8>) -> Bool {
        switch name[0] | 0x20 {
        case UInt8(ascii: "s"):
            return name.hasPrefixIgnoringCase("sec-") || isOne(name, of: ["save-data", "sentry-trace"])
        case UInt8(ascii: "x"):
            return name.hasPrefixIgnoringCase("x-b3-") || name.hasPrefixIgnoringCase("x-datadog-")
                || isOne(name, of: indifferentExtensions)
        default:
            return isOne(name, of: indifferentNames)
        }
    }

    private static let indifferentNames: [StaticString] = [
        "b3", "baggage", "cf-ray", "cloudfront-viewer-address", "correlation-id", "device-memory", "dnt", "downlink",
        "dpr", "eagleid", "ect", "elastic-apm-traceparent", "fly-request-id", "newrelic", "priority", "purpose",
        "request-id", "rtt",
        "traceparent", "tracestate", "uber-trace-id", "upgrade-insecure-requests", "viewport-width", "width",
    ]

    private static let indifferentExtensions: [StaticString] = [
        "x-amz-cf-id", "x-amzn-trace-id", "x-arr-log-id", "x-azure-ref", "x-azure-socketip", "x-client-trace-id",
        "x-cloud-trace-context", "x-correlation-id", "x-forwarded-server", "x-moz", "x-nf-request-id", "x-purpose",
        "x-queue-start", "x-request-start", "x-span-id", "x-timer", "x-trace-id", "x-unique-id",
        "x-varnish", "x-vercel-id",
    ]

    private static func isOne(_ name: Span<UInt8>, of names: [StaticString]) -> Bool {
        for other in names where other.utf8CodeUnitCount == name.count {
            if name.isEqualIgnoringCase(to: other) { return true }
        }
        return false
    }

    /// Whether each request may get any coding that the other may get. A request without the field accepts every coding
    /// (RFC 9110 §12.5.3), which differs from an empty set.
    private static func acceptSameCodings(_ one: FieldView, _ other: FieldView) -> Bool {
        guard sendsAcceptEncoding(one), sendsAcceptEncoding(other) else {
            return sendsAcceptEncoding(one) == sendsAcceptEncoding(other)
        }
        if let own = CodingSet(acceptedBy: one), let others = CodingSet(acceptedBy: other) { return own == others }
        var (own, others) = (LineIterator(one, .acceptEncoding), LineIterator(other, .acceptEncoding))
        while true {
            let (value, counterpart) = (own.next(), others.next())
            guard let value, let counterpart else { return value == nil && counterpart == nil }
            guard value.isEqual(to: counterpart) else { return false }
        }
    }

    /// Whether the origin receives the accepted codings: fields that `Connection` nominates are not forwarded.
    private static func sendsAcceptEncoding(_ request: FieldView) -> Bool {
        guard request.contains(.acceptEncoding) else { return false }
        return request.lines.indices.contains {
            request.lines[$0].field == .acceptEncoding && !request.isNominated(lineAt: $0)
        }
    }
}

/// The lines of a request that distinguish it from others. Excludes fields that `Connection` nominates: they are for
/// this hop only.
private struct DistinguishingLines: ~Escapable {
    private let fields: FieldView
    private var position = 0

    @_lifetime(copy fields)
    init(_ fields: FieldView) { self.fields = fields }

    mutating func next(under policy: borrowing CachingPolicy) -> Int? {
        while position < fields.lines.count {
            let line = position
            position += 1
            if policy.isTelling(fields.lines[line].field, fields.name(at: line)), !fields.isNominated(lineAt: line) {
                return line
            }
        }
        return nil
    }
}

extension CachingPolicy {
    /// Appends bytes that are equal exactly for requests that match for sharing; no bytes if no line distinguishes the
    /// request.
    func appendDistinguishing(_ request: FieldView, to buffer: ByteBuffer) {
        // None of these bytes occurs in a name or a value.
        let (line, valueFollows, end, codings, next): (UInt8, UInt8, UInt8, UInt8, UInt8) = (3, 1, 0, 4, 0x0a)
        var lines = DistinguishingLines(request)
        while let index = lines.next(under: self) {
            buffer.append(line)
            buffer.append(lowercasing: request.name(at: index))
            buffer.append(valueFollows)
            buffer.append(request.value(at: index))
            buffer.append(end)
        }
        guard Self.sendsAcceptEncoding(request) else { return }
        if var accepted = CodingSet(acceptedBy: request) {
            buffer.append(codings)
            while let coding = accepted.popByte() { buffer.append(coding) }
        } else {
            buffer.append(codings)
            var values = LineIterator(request, .acceptEncoding)
            while let value = values.next() {
                buffer.append(value)
                buffer.append(next)
            }
        }
    }
}
