/// Promises that the running program does not keep yet, with the reason. Each is asserted to fail: a case that passes must leave this list.
enum NotYet {
    static let reasons: [String: String] = [
        "a stored part serves the same range": "parts are not stored yet",
        "a suffix inside a stored part": "parts are not stored yet",
        "a stored part serves a range inside it": "parts are not stored yet",
        "a stale part is validated before use": "parts are not stored yet",
        "a body cut off is completed by a range": "parts are not stored yet",
        "only what is missing is fetched": "parts are not stored yet",
        "two parts under one strong tag combine": "parts are not stored yet",
        "parts that make up the whole serve it": "parts are not stored yet",
        "range misses on one object collapse": "range misses do not collapse yet",
    ]
}
