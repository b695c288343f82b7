import Bytes

extension FieldView {
    /// For how many seconds from `now` on `Retry-After` asks to wait (RFC 9110 §10.2.3); `nil` without the field, or
    /// with a value that is neither seconds nor a date.
    /// - Parameter now: seconds since 1970.
    public func retryAfter(at now: Int64) -> Int64? {
        guard let line = firstIndex(of: .retryAfter) else { return nil }
        let value = value(at: line)
        if let seconds = DeltaSeconds.parse(value) { return Int64(seconds) }
        return HTTPDate.parse(value, now: now).map { max(0, $0 - now) }
    }
}
