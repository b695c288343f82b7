/// Selects the stored responses that a 304 freshens (RFC 9111 §4.3.4): add each one whose validators were sent (those
/// that could be selected for the request), then read `selected`. If that is empty, the 304 is for the client's own
/// stored response: forward it, or repeat the request without conditions if the client sent none.
///
/// An `ETag` that is no tag, or a `Last-Modified` that is no date, is no validator, but a 304 in which it differs does
/// not apply to the stored response.
public struct FresheningSelection {
    private enum Validator: Equatable { case strong, weak, none }

    private let notModifiedFacts: ResponseFacts
    private let validator: Validator
    private let mayBeForClient: Bool
    private var strong: [Int] = []
    /// A candidate's tag is weakly equal to the tag of the 304, but weak.
    private var namesWeak = false
    private var newestWeak: (index: Int, facts: ResponseFacts)?
    private var contradicts = false
    private var count = 0

    /// - Parameters:
    ///   - facts: computed from the 304.
    ///   - mayBeForClient: whether the validation request contained the 304's tag because a client sent it
    ///     (`ClientConditions.isConfirmed`).
    public init(notModified facts: ResponseFacts, mayBeForClient: Bool = false) {
        notModifiedFacts = facts
        self.mayBeForClient = mayBeForClient
        validator =
            facts.contains(.hasStrongETag)
            ? .strong
            : facts.contains(.hasWeakETag) || facts.contains(.hasLastModified) ? .weak : .none
    }

    /// - Parameters:
    ///   - notModified: the fields of the 304.
    ///   - stored: the fields of the candidate; its index is the number of candidates before it.
    public mutating func add(_ stored: FieldView, facts: ResponseFacts, notModified: FieldView) {
        defer { count += 1 }
        switch validator {
        case .strong:
            guard let tag = notModified.entityTag, let own = stored.entityTag else { return }
            if tag.isStronglyEqual(to: own) {
                strong.append(count)
            } else if tag.isWeaklyEqual(to: own) {
                namesWeak = true
            }
        case .weak:
            guard matchesWeakly(stored, facts, notModified) else { return }
            if let newest = newestWeak, !facts.isMoreRecent(than: newest.facts) { return }
            newestWeak = (count, facts)
        case .none:
            if !Self.agrees(.etag, notModified, stored) || !Self.agrees(.lastModified, notModified, stored) {
                contradicts = true
            }
        }
    }

    /// The indices of the candidates to freshen.
    public var selected: [Int] {
        switch validator {
        // §4.3.4 forbids it, but nginx weakens the tags of responses that it compresses, and its 304s do not pass the
        // compression. The request contained only this candidate's tag, so the 304 confirms this candidate.
        case .strong: strong.isEmpty && namesWeak && count == 1 && !mayBeForClient ? [0] : strong
        case .weak: newestWeak.map { [$0.index] } ?? []
        // §4.3.4 also requires that the stored response has no validator. But many origins omit the validator in a 304,
        // and with only one candidate there is no doubt which one was confirmed.
        case .none: count == 1 && !contradicts ? [0] : []
        }
    }

    private func matchesWeakly(_ stored: FieldView, _ facts: ResponseFacts, _ notModified: FieldView) -> Bool {
        if let tag = notModified.entityTag {
            guard let own = stored.entityTag else { return false }
            return tag.isWeaklyEqual(to: own)
        }
        return Self.agrees(.etag, notModified, stored) && facts.contains(.hasLastModified)
            && facts.lastModified == notModifiedFacts.lastModified
    }

    private static func agrees(_ validator: KnownField, _ notModified: FieldView, _ stored: FieldView) -> Bool {
        !notModified.contains(validator) || notModified.hasSame(validator, as: stored)
    }
}

extension ResponseFacts {
    /// RFC 9111 §4: by `Date`; among equal dates, the later arrival.
    public func isMoreRecent(than other: ResponseFacts) -> Bool {
        date == other.date ? responseTime.monotonic > other.responseTime.monotonic : date > other.date
    }
}
