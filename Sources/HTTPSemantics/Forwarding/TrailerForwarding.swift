public import Bytes

extension ByteBuffer {
    /// Appends those lines of a trailer section that may go on, in their order: neither what is for one connection (RFC
    /// 9110 §7.6.1) nor what frames, routes, authenticates or controls, which means nothing there (§6.5.1), or too much
    /// to a recipient that merges trailers into the head. They went past all that looks at a head.
    /// - Parameters:
    ///   - connection: what `Connection` said in the head of the same message. Where it names fields that are not
    ///     known, which can be told no more, nothing is appended.
    ///   - plainNamesOnly: leaves out those whose names hold other bytes than letters, digits and hyphens.
    /// - Returns: the first line that was left out for what it is; not one that is for one connection.
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

    /// Whether a field may be a trailer: of the known ones, those that their definition allows there (RFC 9110 §8.8.3,
    /// RFC 9209 §2).
    private static func mayBeTrailer(_ name: Span<UInt8>, _ field: KnownField) -> Bool {
        switch field {
        case .etag, .proxyStatus: true
        case .other: !name.isEqualIgnoringCase(to: "www-authenticate") && !KeyedForwarding.isClientsWord(name, field)
        default: false
        }
    }
}

extension StoredFields {
    /// Trailers as everybody may have them: without those that qualified directives in `head` keep to one client.
    /// - Parameters:
    ///   - trailers: complete lines.
    ///   - head: of the same response; `facts` are its.
    /// - Returns: `nil` if none are left.
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
