public import Bytes

/// Invalidation by responses to unsafe requests (RFC 9111 §4.4).
public enum Invalidation {
    /// Whether to invalidate the target URI's stored responses, and with them fetches of it that are still in flight:
    /// their responses may be older than the change, so they are not stored.
    public static func applies(method: Method, status: Status) -> Bool {
        !method.isSafe && (status.isSuccessful || status.isRedirection)
    }

    /// The targets, besides the request's own, in the response's `Location` and `Content-Location`: path and query,
    /// without fragment. Only targets of the same origin, including the scheme (RFC 9111 §4.4).
    public static func relatedTargets(of fields: FieldView, base: TargetURI) -> [ByteSlice] {
        var targets: [ByteSlice] = []
        for field in [KnownField.location, .contentLocation] {
            var lines = LineIterator(fields, field)
            while let value = lines.next() {
                if let target = base.sameOriginTarget(of: value), !targets.contains(target) { targets.append(target) }
            }
        }
        return targets
    }
}
