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
    func exchange(_ exchange: Exchange, received bytes: Span<UInt8>) -> BodyIntake {
        progressed(at: worker.now)
        if state == .awaitingMemory, !handOutIfInMemory() { return waitForMemory() ? .refused(after: 0) : .taken }
        // A packed response has all of its body already.
        guard state == .streaming, let fetched, let body = fetched.response.looseBody else { return .taken }
        // A reader on another loop may tell its client of the end before this loop goes on.
        if arriving.isCompleted(by: bytes.count) { fetched.noteEnd(at: worker.moment) }
        return take(bytes, into: body, of: fetched.response)
    }

    private func take(_ bytes: Span<UInt8>, into body: GrowingBody, of response: StoredResponse) -> BodyIntake {
        switch arriving.take(bytes, into: body, of: response, memory: worker.shared, at: worker.now) {
        case .done(let reply):
            return reply
        case .tooLong:
            // Which of the bytes are right is unknown.
            end(.truncated(.origin(.body, nil), keepsPart: false))
            return .taken
        case .tooLarge:
            keepWindow(of: response, body, because: .tooLarge)
            return .taken
        case .noRoom:
            keepWindow(of: response, body, because: .noRoom)
            // The last client may have left.
            return state == .streaming ? take(bytes, into: body, of: response) : .taken
        case .noMemory(let taken):
            keepWindow(of: response, body, because: .noRoom)
            return state == .streaming && waitForMemory() ? .refused(after: taken) : .taken
        }
    }

    /// The body is too large, or there is no memory: from now on only the bytes that its readers still need are kept.
    private func keepWindow(of response: StoredResponse, _ body: GrowingBody, because reason: StoreOutcome) {
        if arriving.willBeStored { worker.recorder.count(reason) }
        // The next response is not announced as stored. Set only after the head was sent: this response was announced
        // as stored.
        if arriving.willBeStored, reason == .tooLarge, method == .get { remember(.outgrown) }
        operation?.close()
        if keeping.isWhole { pinBeginning(of: response) }
        arriving.keepWindow(body, of: worker.shared.streamingWindow)
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

    func bodyHasRoom() {
        guard state == .streaming else { return }
        arriving.resume()
        progressed(at: worker.now)
        exchange?.resume()
    }

    // MARK: Memory

    /// Reserves memory for the first piece of the response's content.
    /// - Returns: false if there is no memory.
    func beginBody(of response: StoredResponse) -> Bool {
        guard let body = response.looseBody, method != .head else { return true }
        return arriving.begin(body, memory: worker.shared, at: worker.now)
    }

    /// Hands out the response that awaits memory, if there is some by now.
    /// - Returns: false if the response still awaits memory.
    private func handOutIfInMemory() -> Bool {
        guard let fetched, beginBody(of: fetched.response) else { return false }
        handOut(fetched)
        return true
    }

    /// Waits until other bodies release memory, which they do as their readers go on; no longer than for an origin that
    /// stands still, and while no client has been sent anything, no longer than `Worker.headPatience`.
    /// - Returns: false if the fetch has waited too long, and is over.
    @discardableResult
    func waitForMemory() -> Bool {
        let (now, isHead) = (worker.now, state == .awaitingMemory)
        guard let since = arriving.waitsForMemorySince else {
            let place = worker.shared.memoryLine.enter(isHead ? .head : .body, since: now) {
                [weak operation = self.operation] in
                guard let operation else { return }
                operation.work.handle.enqueue { operation.work.value.lookForMemory() }
            }
            arriving.wait(at: place, since: now)
            poll(from: place)
            return true
        }
        let timeout = request.route.origin.settings.noProgressTimeout.nanoseconds
        if now - since < (isHead ? min(timeout, Worker.headPatience) : timeout) { return true }
        worker.notices.overloaded(worker.shared)
        if isHead, let fetched {
            end(.failed(NoMemory(fetched, at: now)))
        } else {
            end(.truncated(.noMemory, keepsPart: false))
        }
        return false
    }

    /// Looks for memory from time to time, as long as the fetch has its place in the line.
    private func poll(from place: MemoryLine.Place) {
        worker.loop.schedule(after: Worker.memoryRetryInterval) { [weak self, weak place] in
            // Not held meanwhile: the fetch leaves the line by releasing its place.
            guard let self, place != nil else { return }
            lookForMemory()
            if let place { poll(from: place) }
        }
    }

    /// A fetch that is not among the first in line only checks whether it has waited too long: the bytes received stay
    /// where they are.
    private func lookForMemory() {
        guard arriving.waitsForMemory else { return }
        let mayTryNow =
            state == .awaitingMemory
            ? handOutIfInMemory() : arriving.mayTakeMemory(for: .body, of: worker.shared, at: worker.now)
        if mayTryNow { bodyHasRoom() } else { waitForMemory() }
    }

    // MARK: The end

    func exchange(_ exchange: Exchange, endedWith trailers: ByteSlice?) {
        guard let fetched, exchange === self.exchange else { return }
        // The response has no content.
        if state == .awaitingMemory { handOut(fetched) }
        guard state == .streaming else { return }
        fetched.noteEnd(at: worker.moment)
        let response = fetched.response
        if let body = response.looseBody {
            guard arriving.length == nil || method == .head || arriving.length == arriving.received else {
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
