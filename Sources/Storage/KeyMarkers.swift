import HTTPSemantics

/// Facts about a key that hold for a limited time, so that no request waits for a response that it may not have. A key
/// has at most one marker of each kind. A marker does not displace a marker of another kind, since the kinds concern
/// different requests.
///
/// | kind | set by a response that is | later requests | contradicted by a response that is |
/// | --- | --- | --- | --- |
/// | `search` | not for all URLs that share the key | are looked up under their own keys, or pass | for several |
/// | `pass` | for its leader only | fetch alone (Varnish's hit-for-pass) | for several |
/// | `authorization` | for its leader only, for its `Authorization` | with that field fetch alone | for such requests |
/// | `range` | too large to keep | with `Range` ask for that part, or pass | whole, and kept |
/// | `size` | without a length, and too large to keep | are not told that it is stored | whole, and kept |
/// | `unlike` | only for requests like its leader's | share only with such requests | for other requests, too |
///
/// `unlike` says which requests share, and `size` says what `Cache-Status` announces: both hold beside any other
/// marker. Of the other kinds, the first that holds for a request decides (`advice`), in this order. `search` is first,
/// because the responses stored under the key are not for the request. `pass` is next, because it concerns all
/// requests, and may rule out a validation. `authorization` precedes `range`, because requests that wait for the same
/// part also wait in vain if only one of them may have it.
///
/// A fetch sets markers when the response's head has arrived (`Announcement.remember`; `Sharing.reasonToRemember` says
/// which responses set `pass`). A marker is removed when another of its kind replaces it, when a response for several
/// requests contradicts it, or when the whole key is forgotten. An expired marker stays in memory until another marker
/// is set for the key, or until the next response for several requests.
public struct KeyMarkers: Sendable, Equatable {
    /// The kinds, in the order of precedence.
    enum Kind: CaseIterable {
        case search, pass, authorization, range, size, unlike
    }

    /// The advice to a request that no stored response answers.
    public enum Advice: Sendable {
        /// Shares a fetch: no marker rules that out.
        case share
        /// Asks for the wanted part, or passes if no part can be asked for. A request for the whole representation
        /// shares a fetch.
        case askForPart
        /// Fetches alone, and may validate the stored responses.
        case validateAlone
        /// Fetches alone, without regard to the stored responses.
        case pass
    }

    private struct Marker: Sendable, Equatable {
        let reason: NotSharedReason
        /// When the marker expires, in nanoseconds of the monotonic clock.
        let until: Int64

        func holds(at now: Moment) -> Bool { now.monotonic < until }

        /// Whether the marker still holds after a response for several requests.
        func stands(after response: ResponseFacts, keepsWhole: Bool) -> Bool {
            holds(at: response.responseTime) && !reason.isContradicted(by: response, keepsWhole: keepsWhole)
        }
    }

    /// The markers, in no order. Most keys have no marker, and then no array is allocated.
    private var markers: [Marker] = []

    init() {}

    var isEmpty: Bool { markers.isEmpty }

    /// Bytes charged for the markers.
    var charge: Int { isEmpty ? 0 : Charge.markers + markers.count * Charge.marker }

    static let mostCharge = Charge.markers + Kind.allCases.count * Charge.marker

    // MARK: - Markers that hold

    /// The advice for a request with or without `Authorization`.
    func advice(at now: Moment, hasAuthorization: Bool) -> Advice {
        if isEmpty { return .share }
        if reason(.search, at: now) != nil { return .pass }
        if let reason = reason(.pass, at: now) { return reason.allowsValidation ? .validateAlone : .pass }
        if hasAuthorization, reason(.authorization, at: now) != nil { return .validateAlone }
        return reason(.range, at: now) != nil ? .askForPart : .share
    }

    /// Whether only requests that are alike share a response.
    func separatesRequests(at now: Moment) -> Bool { reason(.unlike, at: now) != nil }

    /// Whether the last response without a length was too large to be stored.
    func outgrows(at now: Moment) -> Bool { reason(.size, at: now) != nil }

    /// Whether requests are looked up under the keys of their own URLs.
    func leadsToOwnURL(at now: Moment) -> Bool { reason(.search, at: now) != nil }

    private func reason(_ kind: Kind, at now: Moment) -> NotSharedReason? {
        for index in markers.indices where markers[index].reason.kind == kind && markers[index].holds(at: now) {
            return markers[index].reason
        }
        return nil
    }

    // MARK: - Changes

    /// Sets the marker of `reason`. It replaces a marker of the same kind.
    mutating func set(_ reason: NotSharedReason, until: Int64, at now: Moment) {
        markers.removeAll { $0.reason.kind == reason.kind || !$0.holds(at: now) }
        let marker = Marker(reason: reason, until: until)
        if marker.holds(at: now) { markers.append(marker) }
    }

    /// Whether all markers still hold after a response for several requests.
    /// - Parameter keepsWhole: whether the response brought the whole representation, and it is kept.
    func stand(after response: ResponseFacts, keepsWhole: Bool) -> Bool {
        markers.allSatisfy { $0.stands(after: response, keepsWhole: keepsWhole) }
    }

    /// Forgets the markers that `response` contradicts, and expired markers.
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

    /// Whether each request may still validate the stored responses for itself. A reason for which this is true does
    /// not rule that out.
    fileprivate var allowsValidation: Bool {
        switch self {
        case .noCache, .mustRevalidate, .prohibited(.authorization): true
        case .method, .prohibited, .unlike, .range, .outgrown, .part, .notCacheable, .incremental, .serverError,
            .search:
            false
        }
    }

    /// Whether a response for several requests contradicts the reason. It does not if the reason never concerned such a
    /// response.
    fileprivate func isContradicted(by response: ResponseFacts, keepsWhole: Bool) -> Bool {
        switch kind {
        case .search, .pass: true
        // A response to a request without `Authorization` says nothing about responses to requests with it (RFC 9111
        // §3.5).
        case .authorization: response.contains(.allowsAuthorized)
        // A part does not contradict these reasons, nor does a whole representation that is not kept.
        case .range, .size: keepsWhole
        case .unlike: !response.contains(.separatesRequests)
        }
    }
}
