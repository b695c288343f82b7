import HTTPSemantics

/// The state of the body that a fetch fills: how much of it is kept, how long it will be, and why its origin is held
/// back.
struct ArrivingBody {
    /// How much of the body is kept.
    enum Keeping {
        /// All of it, to be stored once complete.
        case stored
        /// All of it, for late joiners.
        case forSharing
        /// Only the bytes that its readers still need.
        case window

        var isWhole: Bool {
            switch self {
            case .stored, .forSharing: true
            case .window: false
            }
        }
    }

    /// Whether the body flows, or why its origin is held back.
    ///
    /// ```
    /// flowing ⇄ waitingForReaders
    ///    └─no memory→ waitingForMemory ⇄ trying ─memory→ flowing
    /// ```
    private enum Flow {
        case flowing
        case waitingForReaders
        /// There was no memory for the bytes received.
        /// - since: a nanosecond of the loop's clock.
        case waitingForMemory(since: Int64)
        /// The bytes received are offered once more, and may find memory.
        /// - isItsTurn: whether the body was among the first in the memory line, and may take memory before the others.
        case trying(since: Int64, isItsTurn: Bool)
    }

    private(set) var keeping: Keeping
    /// The length in bytes; `nil` if it is not announced.
    let length: Int?
    /// The part of the representation that the content is, if a range was requested and a part came.
    let part: ReceivedPart?
    private var flow = Flow.flowing
    /// Whether the timer of the next try is set.
    private var retryIsSet = false

    init(_ keeping: Keeping = .window, length: Int? = nil, part: ReceivedPart? = nil) {
        self.keeping = keeping
        self.length = length
        self.part = part
    }

    /// Whether the origin is held back for readers or for memory.
    var isPaused: Bool {
        switch flow {
        case .flowing, .trying: false
        case .waitingForReaders, .waitingForMemory: true
        }
    }

    /// Since when there has been no memory for the bytes received, in nanoseconds of the loop's clock; `nil` if there
    /// is.
    var waitsForMemorySince: Int64? {
        switch flow {
        case .flowing, .waitingForReaders: nil
        case .waitingForMemory(let since), .trying(let since, _): since
        }
    }

    var waitsForMemory: Bool { waitsForMemorySince != nil }

    /// Whether the body was among the first in the memory line: the next bytes may take memory before the others.
    var hasTurn: Bool {
        switch flow {
        case .flowing, .waitingForReaders, .waitingForMemory: false
        case .trying(_, let isItsTurn): isItsTurn
        }
    }

    /// Whether the response is stored once complete, as far as is known by now.
    var willBeStored: Bool { keeping == .stored }

    mutating func stopKeepingWhole() { keeping = .window }

    /// The window of the body's readers is full.
    mutating func waitForReaders() { flow = .waitingForReaders }

    /// The bytes received are offered once more.
    mutating func resume() {
        switch flow {
        case .flowing, .trying: break
        case .waitingForReaders: flow = .flowing
        case .waitingForMemory(let since): flow = .trying(since: since, isItsTurn: false)
        }
    }

    /// The body is among the first in the memory line, and the bytes received are offered once more.
    mutating func takeTurn() {
        if let since = waitsForMemorySince { flow = .trying(since: since, isItsTurn: true) }
    }

    /// The body has memory, or needs none any more.
    /// - Returns: whether the body was waiting for memory.
    @discardableResult
    mutating func stopWaitingForMemory() -> Bool {
        guard waitsForMemory else { return false }
        flow = .flowing
        return true
    }

    /// Some of the bytes received are in memory, and the others wait: the time of the wait begins anew.
    mutating func foundSomeMemory(at now: Int64) {
        switch flow {
        case .flowing, .waitingForReaders: break
        case .waitingForMemory: flow = .waitingForMemory(since: now)
        case .trying(_, let isItsTurn): flow = .trying(since: now, isItsTurn: isItsTurn)
        }
    }

    enum MemoryWait {
        case setTimer
        /// A timer is set already.
        case timerIsSet
        case tooLong
    }

    /// There is no memory for the bytes received.
    /// - Parameter patience: the longest wait, in nanoseconds.
    mutating func waitForMemory(at now: Int64, patience: Int64) -> MemoryWait {
        let since = waitsForMemorySince ?? now
        flow = .waitingForMemory(since: since)
        guard now - since < patience else { return .tooLong }
        defer { retryIsSet = true }
        return retryIsSet ? .timerIsSet : .setTimer
    }

    /// The timer fired.
    /// - Returns: whether the body still waits for memory; by now it may wait for its readers, or not at all.
    mutating func retryTimerFired() -> Bool {
        retryIsSet = false
        return waitsForMemory
    }
}
