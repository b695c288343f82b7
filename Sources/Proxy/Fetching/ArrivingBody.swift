import HTTPSemantics

/// What a fetch knows of the body that it fills: how much of it is kept, how long it is to be, and what it waits for.
struct ArrivingBody {
    /// How much is kept.
    enum Keeping {
        /// All of it: it will be stored.
        case stored
        /// All of it, for those who come late.
        case forSharing
        /// What its readers still need.
        case window

        var isWhole: Bool {
            switch self {
            case .stored, .forSharing: true
            case .window: false
            }
        }
    }

    private(set) var keeping: Keeping
    /// In bytes; `nil` where it is not announced.
    let length: Int?
    /// What it is of the representation, where a part was asked for and came.
    let part: ReceivedPart?
    /// Whether the origin waits for its readers, or for memory.
    private(set) var isPaused = false
    /// When there was no memory for what had come, in nanoseconds of the loop's clock; `nil` while there is some.
    private(set) var waitsForMemorySince: Int64?
    /// Whether it was among the first of those who wait: what comes next may take memory before the others.
    private(set) var hasTurn = false
    /// Whether a timer is set that tries again.
    private var retryIsSet = false

    init(_ keeping: Keeping = .window, length: Int? = nil, part: ReceivedPart? = nil) {
        self.keeping = keeping
        self.length = length
        self.part = part
    }

    /// Whether there was no memory for what had come, and there has been none since.
    var waitsForMemory: Bool { waitsForMemorySince != nil }

    /// Whether it is stored once complete, as far as is known by now.
    var willBeStored: Bool { keeping == .stored }

    mutating func stopKeepingWhole() { keeping = .window }
    mutating func pause() { isPaused = true }
    mutating func resume() { isPaused = false }

    /// It has memory, or wants none any more.
    /// - Returns: whether it has waited.
    @discardableResult
    mutating func stopWaiting() -> Bool {
        guard waitsForMemory else { return false }
        waitsForMemorySince = nil
        hasTurn = false
        return true
    }

    /// Some of what had come is in memory, and more waits.
    mutating func foundSomeMemory(at now: Int64) {
        if waitsForMemory { waitsForMemorySince = now }
    }

    /// It is among the first of those who wait.
    mutating func takeTurn() { hasTurn = true }

    enum MemoryWait {
        case setTimer
        /// One is set already.
        case timerIsSet
        case tooLong
    }

    /// There is no memory for what has come.
    /// - Parameter patience: nanoseconds that it may last.
    mutating func waitForMemory(at now: Int64, patience: Int64) -> MemoryWait {
        isPaused = true
        let since = waitsForMemorySince ?? now
        waitsForMemorySince = since
        hasTurn = false
        guard now - since < patience else { return .tooLong }
        defer { retryIsSet = true }
        return retryIsSet ? .timerIsSet : .setTimer
    }

    /// The timer fired.
    /// - Returns: whether it waits for memory still; by now it may wait for its readers, or not at all.
    mutating func retryTimerFired() -> Bool {
        retryIsSet = false
        return waitsForMemory
    }
}
