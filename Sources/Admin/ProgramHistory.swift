import Libevent

/// What the admin pages tell of the program itself: which one it is, since when it runs, and whether its settings are
/// those of the file.
struct ProgramHistory {
    let version: String
    /// Seconds since 1970.
    let started: Int64
    /// Nanoseconds of the loop's clock.
    private let startedAt: Int64
    /// Seconds since 1970: when the settings in use were read.
    private(set) var settingsRead: Int64
    /// `at` is of the loop's clock, in nanoseconds; `nil` before the first.
    private(set) var lastReload: (succeeded: Bool, at: Int64)?

    /// The program begins now.
    init(version: String, on loop: EventLoop) {
        self.version = version
        started = loop.wallClockSeconds
        startedAt = loop.now
        settingsRead = started
    }

    /// - Returns: nanoseconds.
    func age(at time: Int64) -> Int64 { time - startedAt }

    /// If it did not succeed, the settings stayed as they were.
    mutating func reloaded(succeeded: Bool, on loop: EventLoop) {
        lastReload = (succeeded, loop.now)
        if succeeded { settingsRead = loop.wallClockSeconds }
    }
}
