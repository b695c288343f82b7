public import Bytes

extension ByteBuffer {
    /// Appends the lines of a trailer section that may be forwarded, in their order. Omits hop-by-hop fields (RFC 9110
    /// §7.6.1) and fields for framing, routing, authentication or control: they have no meaning there (§6.5.1), or an
    /// unwanted one to a recipient that merges trailers into the head. Trailers have passed none of the checks on the
    /// head.
    /// - Parameters:
    ///   - connection: the options of `Connection` in the head of the same message. If they nominate fields that are
    ///     not known fields, no line is appended, since the names are no longer available.
    ///   - plainNamesOnly: omits names with other bytes than letters, digits and hyphens.
    /// - Returns: the index of the first line omitted because of its name; not of a nominated line.
    @discardableResult
    public func appendTrailers(_ trailers: FieldView, connection: ConnectionOptions, plainNamesOnly: Bool = false)
        -> Int?
    {
        guard !connection.nominatesOthers else { return nil }
        var firstLeftOut: Int?
        for index in 0..<trailers.lines.count {
            let (name, field) = (trailers.name(at: index), trailers.lines[index].field)
            guard Self.mayBeTrailer(name, field), !plainNamesOnly || name.isPlainName else {
                firstLeftOut = firstLeftOut ?? index
                continue
            }
            guard field == .other || !connection.nominated.contains(field) else { continue }
            append(trailers: trailers, at: index)
        }
        return firstLeftOut
    }

    fileprivate func append(trailers: FieldView, at index: Int) {
        append(trailers.name(at: index))
        append(": ")
        append(trailers.value(at: index))
        appendLineEnd()
    }

    /// Whether a field may be a trailer. Of the known fields, only `ETag` (RFC 9110 §8.8.3) and `Proxy-Status` (RFC
    /// 9209 §2) may, as their definitions allow.
    private static func mayBeTrailer(_ name: Span<UInt8>, _ field: KnownField) -> Bool {
        switch field {
        case .etag, .proxyStatus, .xRequestID: true
        case .other: !name.isEqualIgnoringCase(to: "www-authenticate") && !KeyedForwarding.isClientClaim(name, field)
        default: false
        }
    }
}

extension StoredFields {
    /// The trailers for all clients: without fields that qualified directives in `head` restrict to one client.
    /// - Parameters:
    ///   - trailers: complete lines.
    ///   - head: the head of the same response; `facts` are computed from it.
    /// - Returns: `nil` if no trailers are left.
    public static func trailers(_ trailers: ByteSlice, of head: FieldView, facts: ResponseFacts, policy: CachingPolicy)
        -> ByteSlice?
    {
        guard facts.contains(.excludesFields) else { return trailers }
        let excluded = ExcludedFields(head, facts: facts, policy: policy)
        let (block, kept) = (HeadBlock(lines: trailers), ByteBuffer(capacity: trailers.count))
        let fields = block.view
        for index in 0..<fields.lines.count where !excluded.contains(fields.name(at: index)) {
            kept.append(trailers: fields, at: index)
        }
        return kept.isEmpty ? nil : kept.copied()
    }
}
