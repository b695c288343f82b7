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

    /// Whether it goes on, or what its origin waits for.
    ///
    /// ```
    /// flowing ⇄ waitingForReaders
    ///    └─no memory→ waitingForMemory ⇄ trying ─memory→ flowing
    /// ```
    private enum Flow {
        case flowing
        case waitingForReaders
        /// There was no memory for what had come.
        /// - since: a nanosecond of the loop's clock.
        case waitingForMemory(since: Int64)
        /// What had come is offered once more, and may find memory.
        /// - isItsTurn: it was among the first of those who wait, and may take memory before the others.
        case trying(since: Int64, isItsTurn: Bool)
    }

    private(set) var keeping: Keeping
    /// In bytes; `nil` where it is not announced.
    let length: Int?
    /// What it is of the representation, where a part was asked for and came.
    let part: ReceivedPart?
    private var flow = Flow.flowing
    /// Whether a timer is set that tries again.
    private var retryIsSet = false

    init(_ keeping: Keeping = .window, length: Int? = nil, part: ReceivedPart? = nil) {
        self.keeping = keeping
        self.length = length
        self.part = part
    }

    /// Whether the origin waits for its readers, or for memory.
    var isPaused: Bool {
        switch flow {
        case .flowing, .trying: false
        case .waitingForReaders, .waitingForMemory: true
        }
    }

    /// Since when there has been no memory for what had come, in nanoseconds of the loop's clock; `nil` while there is.
    var waitsForMemorySince: Int64? {
        switch flow {
        case .flowing, .waitingForReaders: nil
        case .waitingForMemory(let since), .trying(let since, _): since
        }
    }

    var waitsForMemory: Bool { waitsForMemorySince != nil }

    /// Whether it was among the first of those who wait: what comes next may take memory before the others.
    var hasTurn: Bool {
        switch flow {
        case .flowing, .waitingForReaders, .waitingForMemory: false
        case .trying(_, let isItsTurn): isItsTurn
        }
    }

    /// Whether it is stored once complete, as far as is known by now.
    var willBeStored: Bool { keeping == .stored }

    mutating func stopKeepingWhole() { keeping = .window }

    /// The window of the body's readers is full.
    mutating func waitForReaders() { flow = .waitingForReaders }

    /// What had come is offered once more.
    mutating func resume() {
        switch flow {
        case .flowing, .trying: break
        case .waitingForReaders: flow = .flowing
        case .waitingForMemory(let since): flow = .trying(since: since, isItsTurn: false)
        }
    }

    /// The body is among the first of those who wait for memory, and what had come is offered once more.
    mutating func takeTurn() {
        if let since = waitsForMemorySince { flow = .trying(since: since, isItsTurn: true) }
    }

    /// The body has memory, or wants none any more.
    /// - Returns: whether it has waited.
    @discardableResult
    mutating func stopWaitingForMemory() -> Bool {
        guard waitsForMemory else { return false }
        flow = .flowing
        return true
    }

    /// Some of what had come is in memory, and more waits: its time begins anew.
    mutating func foundSomeMemory(at now: Int64) {
        switch flow {
        case .flowing, .waitingForReaders: break
        case .waitingForMemory: flow = .waitingForMemory(since: now)
        case .trying(_, let isItsTurn): flow = .trying(since: now, isItsTurn: isItsTurn)
        }
    }

    enum MemoryWait {
        case setTimer
        /// One is set already.
        case timerIsSet
        case tooLong
    }

    /// There is no memory for what has come.
    /// - Parameter patience: nanoseconds that it may last.
    mutating func waitForMemory(at now: Int64, patience: Int64) -> MemoryWait {
        let since = waitsForMemorySince ?? now
        flow = .waitingForMemory(since: since)
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
