/// Promises that the running program does not keep yet, with the reason. Each is asserted to fail: a case that passes must leave this list.
enum NotYet {
    static let reasons: [String: String] = [:]
}
