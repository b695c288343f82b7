import Bytes

/// Updates a stored head with the fields of a 304, a response to HEAD or another part (RFC 9111 §3.2).
public enum Freshening {
    /// Fields that an update never replaces (§3.2): `Content-Length`, fields that are processed on receipt, fields that
    /// are not stored at all, and fields that describe the content of the updating message: none, or another part.
    private static let exempt = StoredFields.connectionFields.union(StoredFields.ofContent).union(
        FieldSet(.contentLength) | .age
    )
    /// The fields that state the response's time and lifetime.
    private static let times = FieldSet(.date) | .expires

    /// The stored head with each field of `update` in place of all its lines of that name; the other fields stay.
    ///
    /// `Set-Cookie` is only taken from `update` if the stored response could have had it. Fields that `private` and
    /// `no-cache` of the new head name are omitted; if the update has no caching directives, the stored response's
    /// directives apply (§5.2.2.4, §5.2.2.7). A weak tag stays weak (`FresheningSelection`): the strong tag is for
    /// other bytes, before compression.
    /// - Parameters:
    ///   - facts: computed from `update`.
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

    /// The stored head with only the times of `update`: the response confirms only that the stored response is still
    /// valid.
    /// - Parameters:
    ///   - facts: computed from `update`.
    public static func head(_ stored: HeadBlock, confirmedBy update: FieldView, facts: ResponseFacts) -> HeadBlock {
        merged(stored, with: update, facts: facts, keepsCookie: false, onlyTimes: true)
    }

    /// The updated head for the one client whose request `update` answers: it includes fields that other clients must
    /// not get.
    /// - Parameters:
    ///   - former: the facts of the stored response: `update` may contain fields that it excludes, without excluding
    ///     them again.
    ///   - facts: computed from `update`.
    /// - Returns: `nil` if that client gets the same head as all clients.
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
            // Without its `Date` the new response was generated when it arrived (RFC 9110 §6.6.1).
            if old.lines[index].field == .date, !update.contains(.date) {
                builder.appendDate(facts.date)
                continue
            }
            guard let new = update.firstIndex(named: old.name(at: index)), isTaken(new) else {
                builder.append(old, index)
                continue
            }
            // All new lines replace the first old one.
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
    /// The facts of a stored response after `head` was updated by a response that arrived at `responseTime`. Its `Age`
    /// counts from then on (§4.3.4): the age is that of the validation.
    public init(
        freshened stored: ResponseFacts, head: FieldView, by update: FieldView, requestTime: Moment,
        responseTime: Moment,
        policy: CachingPolicy
    ) {
        self.init(
            status: stored.status, fields: head, requestTime: requestTime, responseTime: responseTime, policy: policy,
            age: Freshness.ageValue(of: update)
        )
        keep(toSession: stored.contains(.isPersonal))
    }
}
