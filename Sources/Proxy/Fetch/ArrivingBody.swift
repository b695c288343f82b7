import Bytes
import HTTPSemantics
import Routing
import Storage
import Upstream

/// The body that a fetch fills: how much of it is kept, how much has arrived, and why its origin is held back.
///
/// A state machine of one fetch, on its loop. It appends to the body and takes memory. Each event returns the remaining
/// action, which the fetch takes.
///
/// ```
/// flowing ⇄ full                          the window is full until the readers have read
/// flowing ─no memory→ short               the bytes received, or the head, wait in the memory line
///            short ─memory, or no more need of it→ flowing
///            short ─the window is full→ full
/// ```
struct ArrivingBody {
    /// How much of the body is kept.
    enum Keeping {
        /// All of it, to be stored once complete.
        case stored
        /// All of it, for late joiners.
        case forSharing
        /// Only the bytes that its readers still need.
        case window

        var isWhole: Bool { self != .window }
    }

    private enum Flow {
        case flowing, full
        case short(MemoryWait)
    }

    /// The outcome of `take`.
    enum Intake {
        /// The reply to the exchange. Nothing else is left to do.
        case done(BodyIntake)
        /// The body would be longer than announced. No byte was taken.
        case tooLong
        /// No memory is left for a body kept whole. No byte was taken: `keepWindow`, then offer the bytes again.
        case noRoom
        /// All bytes were taken, and the response is larger than may be stored: `keepWindow`.
        case tooLarge
        /// There was memory for so many bytes only: `keepWindow`, then wait for memory.
        case noMemory(after: Int)
    }

    private(set) var keeping: Keeping
    /// The length in bytes; `nil` until it is announced.
    private(set) var length: Int?
    /// The bytes that have arrived.
    private(set) var received = 0
    private var flow = Flow.flowing

    init(_ keeping: Keeping = .window, length: Int? = nil) {
        self.keeping = keeping
        self.length = length
    }

    /// Whether the response is stored once complete, as far as is known by now.
    var willBeStored: Bool { keeping == .stored }

    /// Whether the origin is held back for readers or for memory.
    var isPaused: Bool { if case .flowing = flow { false } else { true } }

    // MARK: Bytes

    /// Whether `count` bytes more complete the body.
    func isCompleted(by count: Int) -> Bool { length == received + count }

    /// Appends the bytes that arrived, as far as there is memory.
    /// - Parameters:
    ///   - body: the body of `response`.
    ///   - now: nanoseconds of the loop's clock.
    mutating func take(
        _ bytes: Span<UInt8>, into body: GrowingBody, of response: StoredResponse, memory shared: SharedState,
        at now: Int64
    ) -> Intake {
        let total = received + bytes.count
        if let length, total > length { return .tooLong }
        // The body may fill the room in its last piece in any case.
        var takesPieces = mayTakeMemory(for: .body, of: shared, at: now)
        // A small body takes no more memory than a window would.
        let isSmall = total <= GrowingBody.smallestWindow
        if keeping.isWhole, !isSmall || !takesPieces {
            // The fetches in the memory line found not even the reserve for windows, so there is memory again.
            if shared.store.mayKeepWhole(bytes.count) {
                takesPieces = true
            } else if !isSmall {
                return .noRoom
            }
        }
        var result = body.append(bytes, takingPieces: takesPieces)
        // Retry, since another loop may take the memory just evicted. Terminates: `mostTaken(by:)` bytes always
        // suffice.
        while takesPieces, result == .noMemory,
            shared.store.makeRoom(bytes: GrowingBody.mostTaken(by: bytes.count))
        {
            result = body.append(bytes)
        }
        switch result {
        case .accepted:
            received = total
            stopWaiting(in: shared.memoryLine)
            let isTooLarge = keeping.isWhole && response.objectSize(content: total) > shared.storage.objectLimit
            return isTooLarge ? .tooLarge : .done(.taken)
        case .acceptedAndFull:
            received = total
            stopWaiting(in: shared.memoryLine)
            flow = .full
            return .done(.takenAndFull)
        case .noMemory:
            let (taken, isFull) = body.appendPartially(bytes, takingPieces: takesPieces)
            received += taken
            if isFull {
                // The remaining bytes wait for the readers, and hold up no fetch in the memory line.
                flow = .full
                return .done(.refused(after: taken))
            }
            // The time of the wait begins anew.
            if taken > 0 { memoryWait?.foundSome(at: now) }
            return .noMemory(after: taken)
        }
    }

    /// Ends the body of the response to `request` cleanly, unless its content has not the announced length.
    /// - Returns: whether it has.
    func end(_ response: StoredResponse, _ trailers: ByteSlice?, for request: ClientRequest, isHead: Bool) -> Bool {
        guard let body = response.looseBody else { return true }
        guard isHead || length == nil || length == received else { return false }
        let head = response.head
        body.complete(
            trailers: trailers.flatMap {
                StoredFields.trailers($0, of: head.view, facts: response.facts, policy: request.route.policy)
            }
            .flatMap { request.route.kept(trailers: $0) })
        return true
    }

    /// The body of which the length is known by now.
    consuming func expecting(_ length: Int?) -> Self {
        self.length = length
        return self
    }

    /// The body of which, from now on, only the bytes are kept that its readers still need.
    consuming func keepingWindow(_ body: GrowingBody, of size: Int) -> Self {
        keeping = .window
        body.limit(toWindow: size)
        return self
    }

    /// The body whose bytes are offered once more.
    consuming func resumed() -> Self {
        if case .full = flow { flow = .flowing }
        return self
    }

    // MARK: Memory

    /// Reserves memory for the first piece of content with an announced length. The arrival of content without one
    /// cannot be foreseen: some memory must be available, but is not taken yet.
    /// - Returns: false if there is no memory.
    mutating func begin(_ body: GrowingBody, memory shared: SharedState, at now: Int64) -> Bool {
        guard length != 0 else { return true }
        guard mayTakeMemory(for: .head, of: shared, at: now) else { return false }
        if length == nil {
            // The next bytes may already be there, and are as many as one read takes.
            guard shared.store.makeRoom(bytes: GrowingBody.mostTaken(by: 1)) else { return false }
        } else {
            while !body.begin() {
                // Another loop may take the memory just evicted.
                guard shared.store.makeRoom(bytes: GrowingBody.firstPiece(expecting: length)) else { return false }
            }
        }
        stopWaiting(in: shared.memoryLine)
        return true
    }

    /// The wait for memory; `nil` if there is no need to wait.
    var memoryWait: MemoryWait? {
        if case .short(let wait) = flow { wait } else { nil }
    }

    /// Whether the body, or its head, may take memory before the others in line.
    func mayTakeMemory(for need: MemoryLine.Need, of shared: SharedState, at now: Int64) -> Bool {
        shared.memoryLine.letsThrough(memoryWait, for: need, at: now)
    }

    consuming func waitingForMemory(_ wait: MemoryWait) -> Self {
        flow = .short(wait)
        return self
    }

    /// There is memory: the next in line looks for some at once.
    private mutating func stopWaiting(in line: MemoryLine) {
        guard let wait = memoryWait else { return }
        flow = .flowing
        wait.leave()
        line.wakeFirst(wait.need)
    }

    /// The body that needs no memory any more.
    consuming func leavingLine() -> Self {
        if case .short = flow { flow = .flowing }
        return self
    }
}
