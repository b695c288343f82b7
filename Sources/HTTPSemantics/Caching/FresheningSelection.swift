/// Which stored responses a 304 is about (RFC 9111 §4.3.4): add each that the origin was asked about, which are those
/// that could be chosen for the request, then read `selected`. Where that is empty the 304 is about something the
/// client has: pass it on, or ask again without conditions if the client asked none.
///
/// An `ETag` that is no tag, or a `Last-Modified` that is no date, is no validator, but a 304 with another one is not
/// about what is stored.
public struct FresheningSelection {
    private enum Validator: Equatable { case strong, weak, none }

    private let notModifiedFacts: ResponseFacts
    private let validator: Validator
    private let mayBeForClient: Bool
    private var strong: [Int] = []
    /// A candidate's tag is that of the 304, but weak.
    private var namesWeak = false
    private var newestWeak: (index: Int, facts: ResponseFacts)?
    private var contradicts = false
    private var count = 0

    /// - Parameters:
    ///   - facts: those of the 304 itself.
    ///   - mayBeForClient: whether the origin was asked under the 304's very tag because a client has what it names
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
        // The text forbids it, but nginx weakens the tags of what it compresses, and a 304 does not come by its
        // compression. It was asked about nothing else, so that is what it confirms.
        case .strong: strong.isEmpty && namesWeak && count == 1 && !mayBeForClient ? [0] : strong
        case .weak: newestWeak.map { [$0.index] } ?? []
        // The text asks that the stored one lacks a validator too. But many origins leave the validator out of a
        // 304, and where only one response was named there is no doubt which one was confirmed.
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
    /// RFC 9111 §4: by `Date`; among equals, what arrived later.
    public func isMoreRecent(than other: ResponseFacts) -> Bool {
        date == other.date ? responseTime.monotonic > other.responseTime.monotonic : date > other.date
    }
}
