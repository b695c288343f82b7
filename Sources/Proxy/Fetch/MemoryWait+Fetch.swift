import Libevent

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
