import Libevent
import TLS
import Telemetry

/// The turns of the handshakes of one loop: at most `steps` in an iteration, so that many new clients do not hold up the
/// others; and a bound for how many hold memory of OpenSSL, some 40 KB each.
///
/// Owned by `ClientConnections`, confined to its loop.
final class Handshakes {
    /// The steps in one iteration. A step takes up to a millisecond, with a key of RSA.
    static let steps = 2
    /// The most handshakes that have begun and are not done. A client on a slow network takes half a second for its
    /// handshake, so that thousands a second may come. Beyond, the oldest one is ended.
    static let most = 1024

    private let loop: EventLoop
    private var waiting: [HandshakingConnection] = []
    /// The first of `waiting` that has not had its turn.
    private var next = 0
    private var taken = 0
    private var hasHook = false
    /// In the order in which they began; those that are over leave when they are the first, or are many.
    private var begun: [Weak] = []
    private var underWay = 0

    private struct Weak { weak var connection: HandshakingConnection? }

    init(loop: EventLoop) { self.loop = loop }

    /// The connection has bytes, or room, for a step.
    func wants(_ connection: HandshakingConnection) {
        guard !connection.isQueued else { return }
        hookOnce()
        if taken < Self.steps, next == waiting.count {
            taken += 1
            return connection.step()
        }
        connection.isQueued = true
        // The kernel would report it again in each iteration.
        connection.stopReading()
        connection.disarmWrite()
        waiting.append(connection)
    }

    private func hookOnce() {
        guard !hasHook else { return }
        hasHook = true
        loop.atIterationEnd { [weak self] in self?.iterationEnds() }
    }

    private func iterationEnds() {
        hasHook = false
        while taken < Self.steps, next < waiting.count {
            let connection = waiting[next]
            next += 1
            // One that ended while it waited takes no time.
            guard !connection.isClosed else { continue }
            taken += 1
            connection.isQueued = false
            connection.step()
        }
        if next == waiting.count {
            waiting.removeAll(keepingCapacity: waiting.capacity <= 1024)
            next = 0
        } else {
            if next > 1024, next > waiting.count / 2 {
                waiting.removeFirst(next)
                next = 0
            }
            hookOnce()
        }
        taken = 0
    }

    /// The first byte of the connection has arrived. Each call is followed by one of `ended`.
    func began(_ connection: HandshakingConnection) {
        begun.append(Weak(connection: connection))
        underWay += 1
        if underWay > Self.most { endOldest() }
    }

    /// A handshake that had begun is over.
    func ended() {
        underWay -= 1
        if begun.count > 2 * Self.most { begun.removeAll { $0.connection?.isClosed != false } }
    }

    private func endOldest() {
        guard let index = begun.firstIndex(where: { $0.connection?.isClosed == false }) else { return }
        let oldest = begun[index].connection
        begun.removeFirst(index + 1)
        oldest?.end("more than \(Self.most) handshakes were under way, and this one was the oldest")
    }
}

extension HandshakeFailure {
    /// The reason by which a failure is counted.
    init(_ kind: TLSFailure.Kind) {
        self =
            switch kind {
            case .protocolError: .protocolError
            case .certificate: .certificate
            case .alert: .alert
            case .cut: .cut
            case .shortage: .shortage
            }
    }
}
