import Bytes

/// Updates a stored head with the fields of a 304, a `HEAD` or another part (RFC 9111 §3.2).
public enum Freshening {
    /// Never taken over (§3.2): `Content-Length`, what is processed while receiving, what is not stored at all, and what
    /// is about the content of the message that updates: none, or another part.
    private static let exempt = StoredFields.connectionFields.union(StoredFields.ofContent).union(
        FieldSet(.contentLength, .age)
    )
    /// What an answer says of when, and for how long.
    private static let times = FieldSet(.date, .expires)

    /// The stored head with each field of `update` in place of all its lines of that name; the rest as it was.
    ///
    /// `Set-Cookie` is only taken over where the stored response could have had it, and fields that the new head's own
    /// `private` and `no-cache` name are left out; where the update says nothing of caching, those directives are the
    /// stored response's (§5.2.2.4, §5.2.2.7). A weak tag stays weak (`FresheningSelection`): the strong one is that of
    /// other bytes, those before compression.
    /// - Parameters:
    ///   - facts: those of `update` itself.
    public static func head(
        _ stored: HeadBlock, updatedWith update: FieldView, facts: ResponseFacts, policy: CachingPolicy
    ) -> HeadBlock {
        let keepsCookie = policy.setCookie == .always || (policy.setCookie == .whenPublic && facts.contains(.public))
        let merged = merged(stored, with: update, facts: facts, keepsCookie: keepsCookie)
        let fields = merged.view
        let excluded = ExcludedFields(
            fields, isTargeted: TargetedCacheControl.directives(of: fields, policy: policy) != nil, policy: policy)
        guard !excluded.isEmpty else { return merged }
        var builder = HeadBlockBuilder(capacity: merged.bytes.count, lines: fields.lines.count)
        for index in 0..<fields.lines.count where !excluded.contains(fields.name(at: index)) {
            builder.append(fields, index)
        }
        return builder.finish()
    }

    /// The stored head with the times of `update` and nothing else of it: it is known only that the stored response is
    /// still good.
    /// - Parameters:
    ///   - facts: those of `update` itself.
    public static func head(_ stored: HeadBlock, confirmedBy update: FieldView, facts: ResponseFacts) -> HeadBlock {
        merged(stored, with: update, facts: facts, keepsCookie: false, onlyTimes: true)
    }

    /// The updated head for the one client whose request `update` answers: with what others must not have.
    /// - Parameters:
    ///   - former: the facts of what is stored: what it excludes `update` may bring without saying so again.
    ///   - facts: those of `update` itself.
    /// - Returns: `nil` where it gets what all get.
    public static func headForLeader(
        _ stored: HeadBlock, _ former: ResponseFacts, updatedWith update: FieldView, facts: ResponseFacts
    ) -> HeadBlock? {
        guard update.contains(.setCookie) || facts.contains(.excludesFields) || former.contains(.excludesFields) else {
            return nil
        }
        return merged(stored, with: update, facts: facts, keepsCookie: true)
    }

    private static func merged(
        _ stored: HeadBlock, with update: FieldView, facts: ResponseFacts, keepsCookie: Bool, onlyTimes: Bool = false
    ) -> HeadBlock {
        var builder = HeadBlockBuilder(
            capacity: stored.bytes.count + update.bytes.count, lines: stored.lines.count + update.lines.count)

        let keepsTag = keepsTag(stored.view, update)
        func isTaken(_ index: Int) -> Bool {
            let field = update.lines[index].field
            if onlyTimes, !times.contains(field) { return false }
            if exempt.contains(field) || (field == .setCookie && !keepsCookie) || (field == .etag && keepsTag) {
                return false
            }
            return !update.isNominated(lineAt: index)
        }

        let old = stored.view
        for index in 0..<old.lines.count {
            // Without its date the new response was made when it arrived (RFC 9110 §6.6.1).
            if old.lines[index].field == .date, !update.contains(.date) {
                builder.appendDate(facts.date)
                continue
            }
            guard let new = update.firstIndex(named: old.name(at: index)), isTaken(new) else {
                builder.append(old, index)
                continue
            }
            // All new lines stand where the first old one stood.
            if old.firstIndex(named: old.name(at: index)) == index { append(update, named: new, to: &builder) }
        }
        for index in 0..<update.lines.count where isTaken(index) {
            if old.firstIndex(named: update.name(at: index)) == nil { builder.append(update, index) }
        }
        return builder.finish()
    }

    private static func keepsTag(_ stored: FieldView, _ update: FieldView) -> Bool {
        guard let own = stored.entityTag, own.isWeak, let tag = update.entityTag else { return false }
        return tag.isWeaklyEqual(to: own)
    }

    private static func append(_ update: FieldView, named first: Int, to builder: inout HeadBlockBuilder) {
        var line: Int? = first
        while let index = line {
            builder.append(update, index)
            line = update.firstIndex(named: update.name(at: first), from: index + 1)
        }
    }
}

extension ResponseFacts {
    /// The facts of a stored response after `head` was updated by a response that arrived at `responseTime`, whose
    /// `Age` counts from now on (§4.3.4): the age is that of the validation.
    public init(
        freshened stored: ResponseFacts, head: FieldView, by update: FieldView, requestTime: Moment,
        responseTime: Moment,
        policy: CachingPolicy
    ) {
        self.init(
            status: stored.status, fields: head, requestTime: requestTime, responseTime: responseTime, policy: policy,
            age: Freshness.ageValue(of: update)
        )
        keep(toSession: stored.contains(.isOfSession))
    }
}
