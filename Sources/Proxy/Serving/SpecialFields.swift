import HTTPSemantics

/// Request fields that rule a shortcut out: with one of them a request may need more than any other GET for its URL.
///
/// | | plain hit | crowd | shared answer | conditions |
/// | --- | :---: | :---: | :---: | :---: |
/// | `If-Match`, `If-Unmodified-Since`, `If-Range` | × | × | × | × |
/// | `Range` | | × | × | × |
/// | `If-None-Match`, `If-Modified-Since` | | | × | × |
/// | `Upgrade`, `Expect`, `TE` | × | × | × | |
/// | `Cache-Control`, `Pragma`, `Authorization`, `CDN-Loop` | × | × | | |
///
/// The hit path evaluates ranges and the preconditions of RFC 9110 §13.1.2 and §13.1.3 itself. In the last row stands what
/// changes whether a request may have a response, not how it looks.
extension FieldSet {
    /// What is asked for under conditions, or in part, may get something else than the whole response (RFC 9110 §13.1,
    /// §14.2).
    static let conditions = FieldSet(.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .range, .ifRange)

    /// What they ask for is decided in a `Transaction`, not on the `HitPath`.
    static let notOfPlainHits = FieldSet(
        .ifRange, .ifMatch, .ifUnmodifiedSince, .cacheControl, .pragma, .authorization, .upgrade, .expect, .te, .cdnLoop
    )

    /// The plan of a request with one of them may differ from another's for the same URL: it joins no `Crowd` unasked.
    static let changingPlan = notOfPlainHits.union(FieldSet(.range))

    /// The answer to a request with one of them may differ from a `SharedAnswer`.
    static let changingAnswer = conditions.union(FieldSet(.te, .upgrade, .expect))
}
