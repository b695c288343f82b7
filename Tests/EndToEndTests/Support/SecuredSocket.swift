import Glibc
import Synchronization

/// The TLS of one descriptor of the tests. The handshake goes on within reads and writes. Under a lock: a crowd's thread
/// polls while the test closes.
///
/// ```
/// fresh ─first read or write→ shaking ─→ open ─peer's close_notify→ ended
///                             any ─an alert, the end without close_notify→ failed
/// ```
final class SecuredSocket: SocketLayer {
    private enum Phase { case fresh, shaking, open }

    private struct State {
        let end: TLSEnd
        var phase = Phase.fresh
        /// Encrypted bytes that the kernel has not taken.
        var waiting: [UInt8] = []
        /// Plain bytes of the caller that are encrypted, and whose bytes wait.
        var owed = 0
        /// Whether the last read left bytes here that the next one may give.
        var mayHoldBytes = false
        /// How the bytes of the wire ended.
        var wireEnd: Socket.Outcome?
        var hasSaidEnd = false
    }

    private let descriptor: Int32
    private let state: Mutex<State>

    init(_ descriptor: Int32, as side: TLSEnd.Side, _ offer: TLSEnd.Offer = TLSEnd.Offer()) {
        self.descriptor = descriptor
        state = Mutex(State(end: TLSEnd(side, offer)))
    }

    // MARK: - As a socket

    /// Sends a client's hello.
    func begin() { state.withLock { state in _ = shake(&state) } }

    func read(into buffer: inout [UInt8], atMost limit: Int) -> Socket.Outcome {
        state.withLock { state in
            if let outcome = shake(&state) { return outcome }
            let limit = min(limit, buffer.count)
            var received = 0
            while true {
                let outcome = unsafe buffer.withUnsafeMutableBytes {
                    unsafe state.end.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[received..<limit]))
                }
                if case .bytes(let count) = outcome {
                    received += count
                    guard received == limit else { continue }
                    state.mayHoldBytes = true
                    return .bytes(received)
                }
                // Answers to key updates.
                flush(&state)
                // About as many as the caller wants: what else waits with the kernel holds up the peer.
                if outcome == .needsBytes, take(&state, atMost: limit - received + 64) { continue }
                state.mayHoldBytes = received > 0 && outcome != .needsBytes
                if received > 0 { return .bytes(received) }
                switch outcome {
                case .bytes, .ended: return .ended
                case .failed: return .failed(EPROTO)
                case .needsBytes: return state.wireEnd == .ended ? .cut : state.wireEnd ?? .notNow
                }
            }
        }
    }

    func write(_ bytes: ArraySlice<UInt8>) -> Socket.Outcome {
        state.withLock { state in
            if let outcome = shake(&state) { return outcome }
            if let failure = flush(&state) { return failure }
            guard state.waiting.isEmpty else { return .notNow }
            if state.owed == 0 {
                let part = bytes.prefix(16 << 10)
                guard !part.isEmpty else { return .bytes(0) }
                guard state.end.write(part) else { return .failed(EPIPE) }
                state.owed = part.count
                if let failure = flush(&state) { return failure }
                guard state.waiting.isEmpty else { return .notNow }
            }
            defer { state.owed = 0 }
            return .bytes(state.owed)
        }
    }

    func finishSending() {
        sayEnd()
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Says that no more bytes follow.
    func sayEnd() {
        state.withLock { state in
            guard state.phase == .open, !state.hasSaidEnd else { return }
            state.hasSaidEnd = true
            state.end.sayEnd()
            flush(&state)
        }
    }

    // MARK: - Polling

    func interest(for events: Int16) -> (events: Int16, isReady: Bool) {
        state.withLock { state in
            var asked = events
            // A handshake that has begun waits for the peer.
            if state.phase == .shaking, events != 0 { asked = Int16(POLLIN) }
            if !state.waiting.isEmpty { asked |= Int16(POLLOUT) }
            return (asked, events & Int16(POLLIN) != 0 && state.mayHoldBytes)
        }
    }

    // MARK: - The wire

    /// Goes on with the handshake.
    /// - Returns: `nil` when it is done.
    private func shake(_ state: inout State) -> Socket.Outcome? {
        guard state.phase != .open else { return nil }
        state.phase = .shaking
        while true {
            let outcome = state.end.shake()
            if let failure = flush(&state) { return failure }
            switch outcome {
            case .done:
                state.phase = .open
                // What came behind the handshake.
                state.mayHoldBytes = true
                return nil
            case .failed: return .failed(EPROTO)
            case .needsBytes:
                guard take(&state) else { return state.wireEnd == .ended ? .cut : state.wireEnd ?? .notNow }
            }
        }
    }

    /// Reads the wire once; false if there was nothing.
    private func take(_ state: inout State, atMost limit: Int = 16 << 10) -> Bool {
        guard state.wireEnd == nil else { return false }
        var piece = [UInt8](repeating: 0, count: min(limit, 64 << 10))
        let outcome = Socket.readPlain(descriptor, into: &piece, atMost: piece.count)
        switch outcome {
        case .bytes(let count):
            state.end.give(piece[..<count])
            return true
        case .notNow: return false
        case .ended, .cut, .failed:
            state.wireEnd = outcome
            return false
        }
    }

    /// Writes what the kernel takes; gives a failure.
    @discardableResult
    private func flush(_ state: inout State) -> Socket.Outcome? {
        state.waiting += state.end.takeOutgoing()
        while !state.waiting.isEmpty {
            let outcome = Socket.writePlain(descriptor, state.waiting, from: 0)
            switch outcome {
            case .bytes(let count): state.waiting.removeFirst(count)
            case .notNow: return nil
            case .ended, .cut, .failed:
                state.waiting = []
                return outcome
            }
        }
        return nil
    }
}
