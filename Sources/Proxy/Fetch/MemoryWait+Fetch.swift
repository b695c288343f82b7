import Libevent

extension MemoryWait {
    /// The wait of the operation's fetch, which looks for memory on its loop.
    convenience init(for need: MemoryLine.Need, of operation: FetchOperation, in line: MemoryLine, on loop: EventLoop) {
        self.init(for: need, since: loop.now, in: line) { [weak operation] in
            guard let operation else { return }
            operation.work.handle.enqueue { operation.work.value.lookForMemory() }
        }
        lookLater(operation, on: loop)
    }

    private func lookLater(_ operation: FetchOperation, on loop: EventLoop) {
        loop.schedule(after: MemoryWait.retryInterval) { [weak self, weak operation, unowned loop] in
            guard let self, isInLine, let operation else { return }
            operation.work.value.lookForMemory()
            if isInLine { lookLater(operation, on: loop) }
        }
    }
}
