import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// The response's body: passes it to its readers as it arrives, and puts it into the store once complete. From
/// `streaming` to the end. Also the wait for memory, which includes `awaitingMemory`.
extension Fetch {
    func exchange(_ exchange: Exchange, received body: Span<UInt8>) -> BodyIntake {
        progressed(at: worker.now)
        if state == .awaitingMemory, !handOutIfInMemory() {
            waitForMemory()
            return .refused(after: 0)
        }
        // A packed response has all of its body already.
        guard state == .streaming, let response, let kept = response.looseBody else { return .taken }
        if let announced = arriving.length {
            let length = kept.length + body.count
            // These bytes complete the body, and a reader on another loop may tell its client so before this loop goes
            // on.
            if length == announced { fetched?.noteEnd(at: worker.moment) }
            // The body is longer than announced: which of the bytes are right is unknown.
            if length > announced {
                end(.truncated(.origin(.body, nil), keepsPart: false))
                return .taken
            }
        }
        // The body may fill the room in its last piece in any case.
        var takesPieces = mayTakeMemory(for: .body)
        // A small body takes no more memory than a window would.
        let isSmall = kept.length + body.count <= GrowingBody.smallestWindow
        if keeping.isWhole, !isSmall || !takesPieces {
            // The fetches in the memory line found not even the reserve for windows, so there is memory again.
            if worker.shared.store.mayKeepWhole(body.count) {
                takesPieces = true
            } else if !isSmall {
                stopKeepingWhole(response, kept, .noRoom)
                // The last client may have left.
                guard state == .streaming else { return .taken }
            }
        }
        var result = kept.append(body, takingPieces: takesPieces)
        // Retry, since another loop may take the memory just evicted. Terminates: `mostTaken(by:)` bytes always
        // suffice.
        while takesPieces, result == .noMemory,
            worker.shared.store.makeRoom(bytes: GrowingBody.mostTaken(by: body.count))
        {
            result = kept.append(body)
        }
        if result != .noMemory, stopWaitingForMemory() { worker.shared.memoryLine.wakeFirst(.body) }
        switch result {
        case .accepted:
            if keeping.isWhole, response.objectSize(content: kept.length) > worker.storage.objectLimit {
                stopKeepingWhole(response, kept, .tooLarge)
            }
            return .taken
        case .acceptedAndFull:
            arriving.waitForReaders()
            return .takenAndFull
        case .noMemory:
            let (taken, isFull) = kept.appendWhatFits(body, takingPieces: takesPieces)
            if isFull {
                // The remaining bytes wait for the readers, and hold up no fetch in the memory line.
                stopWaitingForMemory()
                arriving.waitForReaders()
                return .refused(after: taken)
            }
            if taken > 0 { arriving.foundSomeMemory(at: worker.now) }
            stopKeepingWhole(response, kept, .noRoom)
            guard state == .streaming else { return .taken }
            waitForMemory()
            return .refused(after: taken)
        }
    }

    /// The body is too large, or there is no memory: from now on only the bytes that its readers still need are kept.
    private func stopKeepingWhole(_ response: StoredResponse, _ body: GrowingBody, _ reason: StoreOutcome) {
        if arriving.willBeStored { worker.recorder.count(reason) }
        // The next response is not announced as stored. Set only after the head was sent: this response was announced
        // as stored.
        if arriving.willBeStored, reason == .tooLarge, method == .get { remember(.outgrown) }
        operation?.close()
        if keeping.isWhole { pinBeginning(of: response) }
        arriving.stopKeepingWhole()
        body.limit(toWindow: worker.shared.streamingWindow)
        setMayGoOn(unattended: false)
    }

    /// The waiters begin to read one after another, on loops of their own. The beginning of a body that is not kept
    /// whole stays until the last of them has begun, however far the first has read. The operation is already closed.
    func pinBeginning(of response: StoredResponse) {
        guard let body = response.looseBody, let operation, operation.waiterCount > 1, let cursor = body.attach() else {
            return
        }
        worker.shared.callbacks.whenAllAreCalledBack { body.detach(cursor) }
    }

    // MARK: Memory

    /// Reserves memory for the first piece of content with an announced length. The arrival of content without one
    /// cannot be foreseen: some memory must be available, but is not taken yet.
    /// - Returns: false if there is no memory.
    func beginBody(of response: StoredResponse) -> Bool {
        guard let body = response.looseBody, arriving.length != 0, method != .head else { return true }
        guard mayTakeMemory(for: .head) else { return false }
        let (store, size) = (worker.shared.store, GrowingBody.firstPiece(expecting: arriving.length))
        // The next bytes may already be there, and are as many as one read takes.
        guard arriving.length != nil else { return store.makeRoom(bytes: GrowingBody.mostTaken(by: 1)) }
        while !body.begin() {
            // Another loop may take the memory just evicted.
            guard store.makeRoom(bytes: size) else { return false }
        }
        return true
    }

    /// Hands out the response that awaits memory, if there is some by now.
    /// - Returns: false if the response still awaits memory.
    private func handOutIfInMemory() -> Bool {
        guard state == .awaitingMemory, let undelivered else { return true }
        guard beginBody(of: undelivered.response) else { return false }
        if stopWaitingForMemory() { worker.shared.memoryLine.wakeFirst(.head) }
        if let undelivered = takeUndelivered() { handOut(undelivered) }
        return true
    }

    /// Other bodies release memory as their readers go on. This fetch waits for memory no longer than for an origin
    /// that stands still; while no client has been sent anything, only `Worker.headPatience`.
    func waitForMemory() {
        let timeout = request.route.origin.settings.noProgressTimeout.nanoseconds
        let isHead = state == .awaitingMemory
        let hadTurn = arriving.hasTurn
        let wait = arriving.waitForMemory(
            at: worker.now, patience: isHead ? min(timeout, Worker.headPatience) : timeout)
        if memoryPlace == nil, let since = arriving.waitsForMemorySince {
            memoryPlace = worker.shared.memoryLine.enter(
                isHead ? .head : .body, since: since, isFirst: hadTurn, wake: memoryAlarm)
        }
        switch wait {
        case .tooLong:
            giveUp()
        case .timerIsSet:
            break
        case .setTimer:
            worker.loop.schedule(after: Worker.memoryRetryInterval) { [weak self] in
                if let self, arriving.retryTimerFired() { lookForMemory() }
            }
        }
    }

    /// Makes the fetch look for memory, on its loop.
    private var memoryAlarm: @Sendable () -> Void {
        let sleeper = LoopBound(Sleeper(self), on: worker.loop)
        return {
            sleeper.handle.enqueue {
                if let fetch = sleeper.value.fetch, fetch.arriving.waitsForMemory { fetch.lookForMemory() }
            }
        }
    }

    /// Called repeatedly while the fetch waits for memory. A fetch that is not among the first in line only checks
    /// whether it has waited too long: the bytes received stay where they are.
    private func lookForMemory() {
        let hasFoundSome: Bool
        switch state {
        case .awaitingMemory: hasFoundSome = handOutIfInMemory()
        case .streaming: hasFoundSome = takeTurn()
        case .new, .asking, .over: return
        }
        if hasFoundSome { bodyHasRoom() } else { waitForMemory() }
    }

    /// Whether the fetch may take memory before the others in line.
    private func mayTakeMemory(for need: MemoryLine.Need) -> Bool {
        arriving.hasTurn || worker.shared.memoryLine.letsThrough(memoryPlace, for: need, at: worker.now)
    }

    /// Makes a body that is among the first in line leave its place: it may try.
    private func takeTurn() -> Bool {
        guard mayTakeMemory(for: .body) else { return false }
        memoryPlace = nil
        arriving.takeTurn()
        return true
    }

    /// The fetch has memory, or needs none any more.
    /// - Returns: whether the fetch was waiting for memory.
    @discardableResult
    func stopWaitingForMemory() -> Bool {
        guard arriving.stopWaitingForMemory() else { return false }
        memoryPlace = nil
        return true
    }

    /// A weak reference to a waiting fetch, so that `memoryAlarm` does not keep the fetch alive.
    private final class Sleeper {
        private(set) weak var fetch: Fetch?
        init(_ fetch: Fetch) { self.fetch = fetch }
    }

    /// Ends the fetch later, not from inside a call of the exchange. By then it may have found memory after all.
    private func giveUp() {
        let since = arriving.waitsForMemorySince
        worker.loop.schedule(after: 0) { [weak self] in
            guard let self, let since, arriving.waitsForMemorySince == since,
                state == .streaming || state == .awaitingMemory
            else { return }
            worker.notices.overloaded(worker.shared)
            if let undelivered {
                end(.failed(NoMemory(undelivered, at: worker.now)))
            } else {
                end(.truncated(.noMemory, keepsPart: false))
            }
        }
    }

    func bodyHasRoom() {
        guard state == .streaming else { return }
        arriving.resume()
        progressed(at: worker.now)
        exchange?.resume()
    }

    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?) {
        // The response has no content.
        if let undelivered = takeUndelivered() { handOut(undelivered) }
        guard state == .streaming, exchange === self.exchange, let fetched else { return }
        fetched.noteEnd(at: worker.moment)
        let response = fetched.response
        if let body = response.looseBody {
            guard arriving.length == nil || method == .head || arriving.length == body.length else {
                // A response with less or more content than announced never gets a clean end.
                return end(.truncated(.origin(.body, nil), keepsPart: false))
            }
            let head = response.head
            body.complete(
                trailers: trailers.flatMap {
                    StoredFields.trailers($0, of: head.view, facts: response.facts, policy: request.route.policy)
                })
        }
        // Store the response before its operation leaves the in-flight table: every look-up must find the response in
        // one of them.
        if mayBeStoredByNow, let part = arriving.part {
            store(part: part.range, of: part.length, from: response)
        } else if mayBeStoredByNow {
            let outcome = worker.shared.store.store(
                response, under: storeKey, generation: placement.storeGeneration, requestTime: sentAt,
                popularity: max(0, (operation?.waiterCount ?? 0) - 1))
            worker.recorder.count(outcome)
            if outcome == .stored {
                dropFormer()
                if method == .get, plan.stored != nil, !isElsewhere { revalidation.dropVariants(before: response) }
            }
        }
        end(.complete)
    }

    // MARK: Into the store

    /// Whether the response goes into the store. Differs from `willBeStored`, which the head decided: a reload may have
    /// come since, by whose settings the leader's request goes past the cache.
    private var mayBeStoredByNow: Bool { arriving.willBeStored && !hasPassCookieByNow }

    /// Stores the part that was fetched, or as much of it as arrived.
    private func store(part range: Range<Int>, of length: Int?, from response: StoredResponse) {
        let arrived = response.bodyToFollow()
        let body =
            arrived.completeLength == range.count
            ? arrived : GrowingBody(joining: [(arrived, 0..<range.count)], budget: worker.shared.budget)
        let keeper = partKeeper ?? response
        let stored = StoredResponse(
            head: keeper.head, facts: keeper.facts,
            body: GrowingBody(joining: [], budget: worker.shared.budget),
            parts: StoredParts([StoredParts.Run(range, body)], length: length),
            variant: keeper.variant, groups: keeper.groups)
        worker.recorder.count(
            worker.shared.store.storeParts(
                stored, bringing: range, under: storeKey, generation: placement.storeGeneration, requestTime: sentAt))
    }

    /// Keeps the bytes received of a body that broke off, or whose last client left. Under a strong entity tag they may
    /// be completed later (RFC 9111 §3.3).
    func keepWhatArrived(of response: StoredResponse) {
        let policy = request.route.policy
        guard mayBeStoredByNow, method == .get, policy.storesPartialContent, response.facts.status == .ok,
            response.facts.contains(.hasStrongETag)
        else { return }
        let body = response.bodyToFollow()
        let arrived = body.length
        guard body.keepsStart, arrived > 0, arrived < arriving.length ?? .max else { return }
        let (first, length) =
            if let part = arriving.part { (part.range.lowerBound, part.length) } else { (0, arriving.length) }
        store(part: first..<first + arrived, of: length, from: response)
    }

    /// A response stored under the URL's own key is older than the one now stored for this URL and others, but look-ups
    /// would find it first.
    private func dropFormer() {
        guard isElsewhere || request.isUnderVariation, storeKey != request.sentKey,
            let former = worker.shared.store.resource(request.sentKey), former.count > 0
        else { return }
        worker.shared.store.invalidate(request.sentKey)
    }
}

/// There was no memory for the content of a response, and no client was sent any of it. A waiter gets the same answer
/// as a request that may not start a fetch at a limit, but no stale response, since the origin has answered.
struct NoMemory: Error {
    /// The server that sent the response.
    let server: ContactedServer
    let status: Status?

    /// - Parameter now: nanoseconds of the loop's clock.
    init(_ undelivered: FetchedResponse, at now: Int64) {
        server = ContactedServer(
            address: undelivered.server, duration: UInt64(max(0, now - undelivered.requestTime.monotonic)))
        status = undelivered.originStatus
    }
}
