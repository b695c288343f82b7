import HTTPSemantics

/// Request fields that rule out a shortcut: a request with one of them may need more than any other GET for its URL.
///
/// | | plain hit | following | shared answer | conditions |
/// | --- | :---: | :---: | :---: | :---: |
/// | `If-Match`, `If-Unmodified-Since`, `If-Range` | × | × | × | × |
/// | `Range` | | × | × | × |
/// | `If-None-Match`, `If-Modified-Since` | | | × | × |
/// | `Upgrade`, `Expect`, `TE` | × | × | × | |
/// | `Cache-Control`, `Pragma`, `Authorization`, `CDN-Loop` | × | × | | |
///
/// The hit path evaluates ranges and the preconditions of RFC 9110 §13.1.2 and §13.1.3 itself. The fields of the last
/// row determine whether a request may have a response, not the form of that response.
extension FieldSet {
    /// A request with conditions or a range may get another response than the whole (RFC 9110 §13.1, §14.2).
    static let conditions =
        FieldSet(.ifMatch) | .ifNoneMatch | .ifModifiedSince | .ifUnmodifiedSince | .range | .ifRange

    /// A `Transaction` evaluates these fields, not the `HitPath`.
    static let notOfPlainHits =
        FieldSet(.ifRange) | .ifMatch | .ifUnmodifiedSince | .cacheControl | .pragma | .authorization | .upgrade
        | .expect | .te | .cdnLoop

    /// The plan of a request with one of these fields may differ from another's for the same URL: such a request joins
    /// a `WaiterGroup` only through the table.
    static let changingPlan = notOfPlainHits.union(FieldSet(.range))

    /// The answer to a request with one of these fields may differ from a `SharedAnswer`.
    static let changingAnswer = conditions.union(FieldSet(.te) | .upgrade | .expect)
}
