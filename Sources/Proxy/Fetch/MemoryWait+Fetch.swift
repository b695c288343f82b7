import Bytes
import Libevent
import Routing
import Upstream

extension MemoryWait {
    /// The wait of the operation's fetch, which looks for memory on its loop.
    convenience init(for need: MemoryLine.Need, of operation: FetchOperation, in context: LoopContext) {
        self.init(for: need, since: context.now, in: context.shared.memoryLine) { [weak operation] in
            guard let operation else { return }
            operation.work.handle.enqueue { operation.work.value.lookForMemory() }
        }
        lookLater(operation, on: context.loop)
    }

    /// No fetch waits longer than for an origin that stands still, and while no client has been sent anything, no longer
    /// than `headPatience`.
    func isTooLong(at now: Int64, timeout: Duration) -> Bool {
        let longest = timeout.nanoseconds
        return now - since >= (need == .head ? min(longest, Self.headPatience) : longest)
    }

    private func lookLater(_ operation: FetchOperation, on loop: EventLoop) {
        loop.schedule(after: MemoryWait.retryInterval) { [weak self, weak operation, unowned loop] in
            guard let self, isInLine, let operation else { return }
            operation.work.value.lookForMemory()
            if isInLine { lookLater(operation, on: loop) }
        }
    }
}

extension Fetch {
    /// Waits until other bodies release memory, which they do as their readers go on.
    /// - Returns: false if the fetch has waited too long, and is over.
    @discardableResult
    func waitForMemory() -> Bool {
        guard let operation else { return false }
        let head = state == .awaitingMemory ? fetched : nil
        guard let wait = arriving.memoryWait else {
            arriving = arriving.waitingForMemory(
                MemoryWait(for: head == nil ? .body : .head, of: operation, in: context))
            return true
        }
        if !wait.isTooLong(at: context.now, timeout: request.route.origin.settings.noProgressTimeout) { return true }
        context.notices.overloaded(context.shared)
        end(head.map { .failed(NoMemory($0, at: context.now)) } ?? .truncated(.noMemory, keepsPart: false))
        return false
    }

    /// Called from time to time while the fetch waits for memory. A fetch that is not among the first in line only
    /// checks whether it has waited too long: the bytes received stay where they are.
    func lookForMemory() {
        guard arriving.memoryWait != nil, let fetched else { return }
        let goesOn =
            state == .awaitingMemory
            ? handOutIfInMemory(fetched) : arriving.mayTakeMemory(for: .body, of: context.shared, at: context.now)
        if goesOn { bodyHasRoom() } else { waitForMemory() }
    }
}
