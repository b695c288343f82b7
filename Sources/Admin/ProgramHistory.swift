import Libevent

/// The admin pages' data about the program itself: its version, its start, and whether its settings are the ones in the
/// file.
struct ProgramHistory {
    let version: String
    /// In seconds since 1970.
    let started: Int64
    /// In nanoseconds of the loop's clock.
    private let startedAt: Int64
    /// The time at which the settings in use were read, in seconds since 1970.
    private(set) var settingsRead: Int64
    /// `at` is in nanoseconds of the loop's clock. `nil` before the first reload.
    private(set) var lastReload: (succeeded: Bool, at: Int64)?

    /// The program starts now.
    init(version: String, on loop: EventLoop) {
        self.version = version
        started = loop.wallClockSeconds
        startedAt = loop.now
        settingsRead = started
    }

    /// - Returns: the time since the program's start, in nanoseconds.
    func age(at time: Int64) -> Int64 { time - startedAt }

    /// After a failed reload, the settings stay as they were.
    mutating func reloaded(succeeded: Bool, on loop: EventLoop) {
        lastReload = (succeeded, loop.now)
        if succeeded { settingsRead = loop.wallClockSeconds }
    }
}
