import HTTPSemantics

/// What was found out about a key and counts for a while, so that no request waits for another in vain: at most one
/// marker of each kind. Kinds do not displace each other, since they speak of different requests.
///
/// | kind | set by an answer that | later requests | contradicted by one that |
/// | --- | --- | --- | --- |
/// | `search` | is not for all URLs that have the key | look under their own keys, or pass | is for several |
/// | `pass` | only its leader may have | fetch alone (Varnish's hit-for-pass) | is for several |
/// | `authorization` | only its leader may have, for its field | with that field fetch alone | is for those, too |
/// | `range` | is too large to keep | for a part ask for that, or pass | is the whole, and kept |
/// | `size` | came with no length, and was too large to keep | are not told that it is stored | is the whole, and kept |
/// | `unlike` | only those alike its leader may have | share with those alike | is not only for those |
///
/// `unlike` says who shares, `size` what clients are told, and both hold beside any other. Of the others a request goes by the first, in this order, that
/// holds for it (`advice`): `search`, because what is stored under the key is not for it; `pass`, because that is for
/// all, and may rule out a validation; `authorization` before `range`, because those who wait for the same part wait in
/// vain, too, if only one may have it.
///
/// A fetch sets them when the head is there (`Fetch.remember`; `Sharing.reasonToRemember` says which answers `pass`).
/// A marker goes when another of its kind takes its place, when an answer that several may have contradicts it, or with
/// all that is known of the key. One whose time is over stays in memory until anything else is marked, or until the
/// next answer that several may have.
public struct KeyMarkers: Sendable, Equatable {
    /// The kinds, in the order of precedence.
    enum Kind: CaseIterable {
        case search, pass, authorization, range, size, unlike
    }

    /// What a request does when nothing stored answers it.
    public enum Advice: Sendable {
        /// Shares a fetch: nothing speaks against it.
        case share
        /// Asks for the part it wants, or passes if no part can be asked for; if it wants the whole, it shares a fetch.
        case askForPart
        /// Fetches alone, and may validate what is stored.
        case validateAlone
        /// Fetches alone, whatever is stored.
        case pass
    }

    private struct Marker: Sendable, Equatable {
        let reason: NotSharedReason
        /// Nanosecond of the monotonic clock from which on the marker no longer counts.
        let until: Int64

        func holds(at now: Moment) -> Bool { now.monotonic < until }

        /// Whether the marker is still to be kept after a response that several may have.
        func stands(after response: ResponseFacts, keepsWhole: Bool) -> Bool {
            holds(at: response.responseTime) && !reason.isContradicted(by: response, keepsWhole: keepsWhole)
        }
    }

    /// The markers, in no order. Most keys have none, and then there is no list.
    private var markers: [Marker] = []

    init() {}

    var isEmpty: Bool { markers.isEmpty }

    /// Bytes it accounts for.
    var charge: Int { isEmpty ? 0 : Charge.markers + markers.count * Charge.marker }

    static let mostCharge = Charge.markers + Kind.allCases.count * Charge.marker

    // MARK: - What holds

    /// What a request goes by, with or without `Authorization`.
    func advice(at now: Moment, hasAuthorization: Bool) -> Advice {
        if isEmpty { return .share }
        if reason(.search, at: now) != nil { return .pass }
        if let reason = reason(.pass, at: now) { return reason.allowsValidation ? .validateAlone : .pass }
        if hasAuthorization, reason(.authorization, at: now) != nil { return .validateAlone }
        return reason(.range, at: now) != nil ? .askForPart : .share
    }

    /// Whether requests that are not alike do not share.
    func separatesRequests(at now: Moment) -> Bool { reason(.unlike, at: now) != nil }

    /// Whether the last response without a length was too large to be stored.
    func outgrows(at now: Moment) -> Bool { reason(.size, at: now) != nil }

    /// Whether requests look under their own URL's key.
    func leadsToOwnURL(at now: Moment) -> Bool { reason(.search, at: now) != nil }

    private func reason(_ kind: Kind, at now: Moment) -> NotSharedReason? {
        for index in markers.indices where markers[index].reason.kind == kind && markers[index].holds(at: now) {
            return markers[index].reason
        }
        return nil
    }

    // MARK: - Changes

    /// Sets the marker of `reason`, in the place of any other of its kind.
    mutating func set(_ reason: NotSharedReason, until: Int64, at now: Moment) {
        markers.removeAll { $0.reason.kind == reason.kind || !$0.holds(at: now) }
        let marker = Marker(reason: reason, until: until)
        if marker.holds(at: now) { markers.append(marker) }
    }

    /// Whether all markers stay after a response that several may have.
    /// - Parameter keepsWhole: whether the whole representation came with it and is kept.
    func stand(after response: ResponseFacts, keepsWhole: Bool) -> Bool {
        markers.allSatisfy { $0.stands(after: response, keepsWhole: keepsWhole) }
    }

    /// Forgets the markers that `response` contradicts, and what no longer counts.
    mutating func forget(after response: ResponseFacts, keepsWhole: Bool) {
        if stand(after: response, keepsWhole: keepsWhole) { return }
        markers.removeAll { !$0.stands(after: response, keepsWhole: keepsWhole) }
    }
}

extension NotSharedReason {
    fileprivate var kind: KeyMarkers.Kind {
        switch self {
        case .search: .search
        case .prohibited(.authorization): .authorization
        case .range: .range
        case .outgrown: .size
        case .unlike: .unlike
        case .method, .prohibited, .noCache, .mustRevalidate, .part, .notCacheable, .incremental, .serverError: .pass
        }
    }

    /// Whether what is stored may be validated all the same, by each request for itself: these say nothing against
    /// that.
    fileprivate var allowsValidation: Bool {
        switch self {
        case .noCache, .mustRevalidate, .prohibited(.authorization): true
        case .method, .prohibited, .unlike, .range, .outgrown, .part, .notCacheable, .incremental, .serverError,
            .search:
            false
        }
    }

    /// Whether a response that several may have contradicts the reason: not where that never spoke of such a one.
    fileprivate func isContradicted(by response: ResponseFacts, keepsWhole: Bool) -> Bool {
        switch kind {
        case .search, .pass: true
        // What comes without the field says nothing of what comes with it (RFC 9111 §3.5).
        case .authorization: response.contains(.allowsAuthorized)
        // A part says nothing of that, nor does a whole that is not kept.
        case .range, .size: keepsWhole
        case .unlike: !response.contains(.separatesRequests)
        }
    }
}
