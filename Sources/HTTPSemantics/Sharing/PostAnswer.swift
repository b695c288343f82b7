/// Whether the response to POST may be stored for GET: its `Content-Location` is the request's own target (RFC 9110
/// §9.3.3). Its lifetime must also be explicit; see `storability`.
public enum PostAnswer {
    /// - Parameters:
    ///   - fields: the response's.
    ///   - target: the request's.
    public static func isForTarget(_ fields: FieldView, target: TargetURI) -> Bool {
        guard let location = fields.onlyValue(of: .contentLocation) else { return false }
        return target.sameOriginTarget(of: location) == target.pathAndQuery
    }
}
