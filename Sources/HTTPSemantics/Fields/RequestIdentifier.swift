import Bytes

extension FieldView {
    private static let longestRequestID = 128

    /// The client's own identifier of the request, in `X-Request-Id`; `nil` if there is none, more than one, or one with
    /// other characters than letters, digits, `.`, `_` and `-`: programs behind this proxy write it into logs, files
    /// and pages.
    public var requestID: Span<UInt8>? {
        @_lifetime(copy self)
        get {
            guard let value = onlyValue(of: .xRequestID), 1...Self.longestRequestID ~= value.count else { return nil }
            for index in 0..<value.count where !value[index].isPlainInName {
                guard value[index] == UInt8(ascii: ".") || value[index] == UInt8(ascii: "_") else { return nil }
            }
            return value
        }
    }
}
