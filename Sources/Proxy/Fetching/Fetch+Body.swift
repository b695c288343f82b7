import Bytes
import Coalescing
import HTTPSemantics
import Libevent
import Storage
import Telemetry
import Upstream

/// The response's body: to its readers as it arrives, and into the store once complete. From `streaming` to the end.
/// And memory for it: in `awaitingMemory` too.
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
            // These bytes make it whole, and a reader on another loop may tell its client so before this loop goes on.
            if length == announced { fetched?.noteEnd(at: worker.moment) }
            // More than was announced: nobody can tell which of the bytes are right.
            if length > announced {
                end(.truncated(.origin(.body, nil), keepsPart: false))
                return .taken
            }
        }
        // The room in its last piece is its own in any case.
        var takesPieces = mayTakeMemory(for: .body)
        // A small one takes no more than a window would.
        let isSmall = kept.length + body.count <= GrowingBody.smallestWindow
        if keeping.isWhole, !isSmall || !takesPieces {
            // Who stands in line found not even the reserve for windows: there is memory again.
            if worker.shared.store.mayKeepWhole(body.count) {
                takesPieces = true
            } else if !isSmall {
                stopKeepingWhole(response, kept, .noRoom)
                // Perhaps nobody is left who waits for it.
                guard state == .streaming else { return .taken }
            }
        }
        var result = kept.append(body, takingPieces: takesPieces)
        // Another loop may take what this makes free. With so much it can be appended: this ends.
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
                // What is left waits for the readers, and keeps nobody in line waiting.
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

    /// Too large, or no memory: from now on only what its readers still need is kept.
    private func stopKeepingWhole(_ response: StoredResponse, _ body: GrowingBody, _ reason: StoreOutcome) {
        if arriving.willBeStored { worker.recorder.count(reason) }
        // The next one is not said to be stored. Not before the head is out: this one was.
        if arriving.willBeStored, reason == .tooLarge, method == .get { remember(.outgrown) }
        operation?.close()
        if keeping.isWhole { pinBeginning(of: response) }
        arriving.stopKeepingWhole()
        body.limit(toWindow: worker.shared.streamingWindow)
        setMayGoOn(unattended: false)
    }

    /// Those who were served begin one after another, on loops of their own: the beginning of a body that is not kept
    /// whole stays for the last of them, however far the first has read. The operation is already closed.
    func pinBeginning(of response: StoredResponse) {
        guard let body = response.looseBody, let operation, operation.waiterCount > 1, let cursor = body.attach() else {
            return
        }
        worker.shared.callbacks.whenAllAreCalledBack { body.detach(cursor) }
    }

    // MARK: Memory

    /// Reserves memory for the first of the content that is announced. Of content that is not, nobody knows when it
    /// will come: there is to be some memory, and it is not taken yet.
    /// - Returns: false when there is none.
    func beginBody(of response: StoredResponse) -> Bool {
        guard let body = response.looseBody, arriving.length != 0, method != .head else { return true }
        guard mayTakeMemory(for: .head) else { return false }
        let (store, size) = (worker.shared.store, GrowingBody.firstPiece(expecting: arriving.length))
        // What comes next may already be there, and is as much as one read takes.
        guard arriving.length != nil else { return store.makeRoom(bytes: GrowingBody.mostTaken(by: 1)) }
        while !body.begin() {
            // Another loop may take what this makes free.
            guard store.makeRoom(bytes: size) else { return false }
        }
        return true
    }

    /// Hands out what awaits memory, if there is some by now.
    /// - Returns: false when it awaits it still.
    private func handOutIfInMemory() -> Bool {
        guard state == .awaitingMemory, let undelivered else { return true }
        guard beginBody(of: undelivered.response) else { return false }
        if stopWaitingForMemory() { worker.shared.memoryLine.wakeFirst(.head) }
        if let undelivered = takeUndelivered() { handOut(undelivered) }
        return true
    }

    /// Other bodies give memory back as their readers go on. This one waits for it no longer than for an origin that
    /// stands still, and while nobody was told anything, for a moment.
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

    /// Has the fetch look for memory, on its loop.
    private var memoryAlarm: @Sendable () -> Void {
        let sleeper = LoopBound(Sleeper(self), on: worker.loop)
        return {
            sleeper.handle.enqueue {
                if let fetch = sleeper.value.fetch, fetch.arriving.waitsForMemory { fetch.lookForMemory() }
            }
        }
    }

    /// Now and then while it waits for memory. If it is not among the first in line, it only sees whether it has waited
    /// too long: what came stays where it is.
    private func lookForMemory() {
        let hasFoundSome: Bool
        switch state {
        case .awaitingMemory: hasFoundSome = handOutIfInMemory()
        case .streaming: hasFoundSome = takeTurn()
        case .new, .asking, .over: return
        }
        if hasFoundSome { bodyHasRoom() } else { waitForMemory() }
    }

    /// Whether it may take memory before those in line.
    private func mayTakeMemory(for need: MemoryLine.Need) -> Bool {
        arriving.hasTurn || worker.shared.memoryLine.letsThrough(memoryPlace, for: need, at: worker.now)
    }

    /// Has a body leave its place if it is among the first: it may try.
    private func takeTurn() -> Bool {
        guard mayTakeMemory(for: .body) else { return false }
        memoryPlace = nil
        arriving.takeTurn()
        return true
    }

    /// The fetch has memory, or wants none any more.
    /// - Returns: whether it has waited.
    @discardableResult
    func stopWaitingForMemory() -> Bool {
        guard arriving.stopWaitingForMemory() else { return false }
        memoryPlace = nil
        return true
    }

    /// A fetch that waits, and is not kept alive by who may wake it.
    private final class Sleeper {
        private(set) weak var fetch: Fetch?
        init(_ fetch: Fetch) { self.fetch = fetch }
    }

    /// Not from inside a call of the exchange. By the time it may have found memory after all.
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
        // It has no content.
        if let undelivered = takeUndelivered() { handOut(undelivered) }
        guard state == .streaming, exchange === self.exchange, let fetched else { return }
        fetched.noteEnd(at: worker.moment)
        let response = fetched.response
        if let body = response.looseBody {
            guard arriving.length == nil || method == .head || arriving.length == body.length else {
                // Never a clean end for less, or more, than was announced.
                return end(.truncated(.origin(.body, nil), keepsPart: false))
            }
            let head = response.head
            body.complete(
                trailers: trailers.flatMap {
                    StoredFields.trailers($0, of: head.view, facts: response.facts, policy: request.route.policy)
                })
        }
        // Into the store before it leaves the in-flight table: every look-up must find it in one of them.
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

    /// Whether what arrived goes into the store. Not as `willBeStored`, which is what the head came to: a reload may
    /// have come since, by whose settings the leader's request goes past the cache.
    private var mayBeStoredByNow: Bool { arriving.willBeStored && !hasPassCookieByNow }

    /// The part that was fetched, or as much of it as arrived.
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

    /// The body broke off, or nobody wants the rest. Under a strong entity tag what is there may be completed later
    /// (RFC 9111 §3.3).
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

    /// What was stored for the URL alone is older than what is now stored for it and others, but would be found first.
    private func dropFormer() {
        guard isElsewhere || request.isUnderVariation, storeKey != request.sentKey,
            let former = worker.shared.store.resource(request.sentKey), former.count > 0
        else { return }
        worker.shared.store.invalidate(request.sentKey)
    }
}

/// There was no memory for the content of a response, and nobody was told anything of it: who waits for it gets what a
/// request gets for which nothing may be fetched. Nothing stale, since the origin has answered.
struct NoMemory: Error {
    /// The server that sent it.
    let server: ContactedServer
    let status: Status?

    /// - Parameter now: nanoseconds of the loop's clock.
    init(_ undelivered: FetchedResponse, at now: Int64) {
        server = ContactedServer(
            address: undelivered.server, duration: UInt64(max(0, now - undelivered.requestTime.monotonic)))
        status = undelivered.originStatus
    }
}
