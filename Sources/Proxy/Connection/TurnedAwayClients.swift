import Bytes
import Libevent

/// Clients that got a response before any byte from them was read, because there is no room for them.
///
/// If such a connection were closed at once, the kernel would answer the client's request with a reset, which may erase
/// the response before the client reads it (RFC 9112 §9.6). So only the sending side is shut, and received bytes are
/// dropped until the client closes its side. The time and the number of such connections are bounded.
///
/// Owned by the loop's `ClientConnections`, confined to its loop.
final class TurnedAwayClients {
    /// How long a client has to read the response, in nanoseconds: a few round trips.
    private static let patience: Int64 = 1_000_000_000
    /// The most of these connections; further ones are closed at once. Each holds a descriptor, and there are few when
    /// there is no room.
    private static let most = 16

    private var clients: [ObjectIdentifier: TurnedAwayClient] = [:]
    /// The buffer into which all of these connections are read.
    private let dropped = ByteBuffer(capacity: 4096)

    /// Ends the connection of `client`, to which the response has been written.
    func end(_ client: TurnedAwayClient) {
        guard clients.count < Self.most else { return client.close() }
        clients[ObjectIdentifier(client)] = client
        client.linger(for: Self.patience, into: dropped) { [unowned self] in clients[ObjectIdentifier($0)] = nil }
    }

    /// Ends all of these connections now.
    func cut() {
        for client in Array(clients.values) { client.end() }
    }
}

/// The connection of one such client. Its owner releases it when it ends.
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
