import Foundation

enum DateText {
    /// The IMF-fixdate of this second (RFC 9110 §5.6.7).
    static var now: String { text("EEE, dd MMM yyyy HH:mm:ss 'GMT'") }
    static var day: String { text("yyyy-MM-dd HH:mm 'UTC'") }

    private static func text(_ format: String) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "UTC")
        formatter.dateFormat = format
        return formatter.string(from: Date())
    }
}
