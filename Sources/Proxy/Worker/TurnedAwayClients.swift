import Bytes
import Libevent

/// Clients that got an answer before anything of them was read: there is no room for them.
///
/// If such a connection is closed at once, the kernel answers what the client sends, or has sent, with a reset, which may
/// take the answer away from it (RFC 9112 §9.6). So only our half is closed, and what comes is dropped until the client
/// closes its own, for a bounded time and of a bounded number.
///
/// Owned by the loop's `ClientConnections`, confined to its loop.
final class TurnedAwayClients {
    /// How long they have to read the answer, in nanoseconds: a few round trips.
    private static let patience: Int64 = 1_000_000_000
    /// Each holds a descriptor, of which there are few when there is no room. Those beyond are closed at once.
    private static let most = 16

    private var clients: [ObjectIdentifier: TurnedAwayClient] = [:]
    /// The buffer that all of them are read into.
    private let dropped = ByteBuffer(capacity: 4096)

    /// The answer has been written to `client`: ends its connection.
    func end(_ client: TurnedAwayClient) {
        guard clients.count < Self.most else { return client.close() }
        clients[ObjectIdentifier(client)] = client
        client.linger(for: Self.patience, into: dropped) { [unowned self] in clients[ObjectIdentifier($0)] = nil }
    }

    /// Ends all of them now.
    func cut() {
        for client in Array(clients.values) { client.end() }
    }
}

/// One of them. Its owner lets go of it when it ends.
final class TurnedAwayClient: Socket {
    private var dropped: ByteBuffer?
    private var onEnd: (TurnedAwayClient) -> Void = { _ in }
    private var deadline = Deadline.none

    fileprivate func linger(
        for patience: Int64, into dropped: ByteBuffer, onEnd: @escaping (TurnedAwayClient) -> Void
    ) {
        self.dropped = dropped
        self.onEnd = onEnd
        deadline = loop.deadlines.arm(self, after: patience)
        try? shutdownWrite()
        startReading()
    }

    override func readable() {
        guard let dropped else { return stopReading() }
        dropped.removeAll()
        switch read(into: dropped) {
        case .bytes, .wouldBlock: break
        case .endOfStream, .failed: end()
        }
    }

    override func cannotWatch(_ error: SystemError) { end() }

    override func deadlineReached() -> Int64? {
        deadline = .none
        end()
        return nil
    }

    fileprivate func end() {
        guard !isClosed else { return }
        loop.deadlines.cancel(deadline)
        close()
        onEnd(self)
    }
}
