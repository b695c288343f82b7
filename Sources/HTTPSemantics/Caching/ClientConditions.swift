/// What a client's own preconditions come to against the stored response chosen for it.
public enum ClientCondition: Sendable, Equatable {
    /// The response as it is (or the range of it that was asked for).
    case send
    /// 304: the client has it already.
    case notModified
}

/// Evaluates `If-None-Match` and `If-Modified-Since` (RFC 9111 §4.3.2, RFC 9110 §13.1.2, §13.1.3, §13.2.2).
///
/// `If-Match` and `If-Unmodified-Since` are not a cache's to evaluate; such requests are forwarded (`RequestScope`).
public enum ClientConditions {
    /// The fields that make a request conditional for a cache.
    @inlinable
    public static func apply(to fields: FieldView) -> Bool {
        fields.contains(.ifNoneMatch) || fields.contains(.ifModifiedSince)
    }

    /// - Parameters:
    ///   - request: the fields of a GET or HEAD.
    ///   - stored: the fields of the stored response, after any freshening.
    @inlinable
    public static func evaluate(_ request: FieldView, stored: FieldView, facts: ResponseFacts) -> ClientCondition {
        guard apply(to: request) else { return .send }
        return considered(request, stored: stored, facts: facts)
    }

    @usableFromInline
    static func considered(_ request: FieldView, stored: FieldView, facts: ResponseFacts) -> ClientCondition {
        // §4.3.2: for stored 200 and 206; any other response would not be different for the condition.
        guard facts.status == .ok || facts.status == .partialContent else { return .send }
        if request.contains(.ifNoneMatch) {
            return matches(request, .ifNoneMatch, stored) ? .notModified : .send
        }
        // RFC 9110 §13.1.3: more than one, or one that is no date, is ignored.
        guard let value = request.onlyValue(of: .ifModifiedSince),
            let since = HTTPDate.parse(value, now: facts.responseTime.wall)
        else { return .send }
        let modified = facts.contains(.hasLastModified) ? facts.lastModified : facts.date
        return modified <= since ? .notModified : .send
    }

    /// Whether a 304 confirms what the client has: its tag is weakly equal to one that the client named. A `*` names
    /// none (RFC 9111 §4.3.2, RFC 9110 §13.1.2).
    /// - Parameter strongly: whether it must be strongly equal.
    public static func isConfirmed(_ request: FieldView, by notModified: FieldView, strongly: Bool = false) -> Bool {
        guard let confirmed = notModified.entityTag else { return false }
        var members = ListIterator(request, .ifNoneMatch, quoting: .quotedStrings)
        while let member = members.next() {
            guard let tag = EntityTag(member) else { continue }
            if strongly ? tag.isStronglyEqual(to: confirmed) : tag.isWeaklyEqual(to: confirmed) { return true }
        }
        return false
    }

    /// Whether a member of the list in `field` is weakly equal to the stored response's entity tag, or is `*`.
    static func matches(_ request: FieldView, _ field: KnownField, _ stored: FieldView) -> Bool {
        // Outside of the loop: a long tag, read for each of thousands of members, would cost a hundred million steps.
        let own = stored.entityTag
        var members = ListIterator(request, field, quoting: .quotedStrings)
        while let member = members.next() {
            if member.count == 1, member[0] == UInt8(ascii: "*") { return true }
            if let own, own.isWeaklyEqual(toTagIn: member) { return true }
        }
        return false
    }
}

extension FieldSet {
    /// Fields that a 304 made by a cache leaves out: they describe content, which it has none of (RFC 9110 §15.4.5).
    /// `Last-Modified` belongs to them where there is an `ETag`.
    public static let omittedFromNotModified = FieldSet(
        .contentLength, .contentType, .contentEncoding, .contentLanguage, .acceptRanges, .transferEncoding, .trailer
    ).union(StoredFields.ofContent)

    /// What a 304 for the stored response with `fields` leaves out.
    public static func omittedFromNotModified(_ fields: FieldView) -> FieldSet {
        fields.contains(.etag) ? omittedFromNotModified.union(FieldSet(.lastModified)) : omittedFromNotModified
    }
}
