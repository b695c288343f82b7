public import Bytes

/// What an unsafe request makes unusable (RFC 9111 §4.4).
public enum Invalidation {
    /// Whether the target URI's stored responses are to be invalidated, and with it fetches of it that are still in
    /// flight: what they bring may be older than the change, so it is not stored.
    public static func applies(method: Method, status: Status) -> Bool {
        !method.isSafe && (status.isSuccessful || status.isRedirection)
    }

    /// The targets, besides the request's own, that the response's `Location` and `Content-Location` name: path and
    /// query, without fragment. Only those of the same origin, scheme and all (RFC 9111 §4.4).
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
