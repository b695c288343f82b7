import Glibc
import Synchronization

/// One client connection, used step by step by the test itself: any bytes out, answers in. Every wait has an end.
final class Conversation: Sendable {
    private struct State {
        var isOpen = true
        var isEndedByPeer = false
        var isReset = false
        /// Came outside of any answer.
        var unread: [UInt8] = []
        /// Before the first byte of what was sent last, unless an answer was being read.
        var askedAt: Instant?
        /// The answer that is being read.
        var reader: AnswerReader?
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    static let patience = Duration.seconds(20)

    /// - Parameter name: the path that our end is bound to, if it is a Unix socket.
    init(with endpoint: Endpoint, as name: String? = nil) throws {
        descriptor = try Socket.connect(to: endpoint, as: name)
        wait(for: POLLOUT, until: .now + Self.patience)
        if let code = Socket.failure(of: descriptor) {
            close()
            throw System.Failure(call: "connect \(endpoint)", code: code)
        }
    }

    deinit { close() }

    /// Speaks TLS from here on.
    func secure(_ offer: TLSEnd.Offer = TLSEnd.Offer()) {
        let layer = SecuredSocket(descriptor, as: .client, offer)
        SocketLayers.add(layer, to: descriptor)
        layer.begin()
    }

    var isEndedByPeer: Bool { state.withLock { $0.isEndedByPeer } }
    /// Whether it ended with an error instead of the end of the stream.
    var isReset: Bool { state.withLock { $0.isReset } }

    // MARK: - Sending

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        let begun = Instant.now
        let deadline = begun + Self.patience
        state.withLock { state in if state.reader == nil { state.askedAt = begun } }
        var sent = 0
        while sent < bytes.count {
            switch Socket.write(descriptor, bytes, from: sent) {
            case .bytes(let count): sent += count
            case .failed(let code): throw System.Failure(call: "send", code: code)
            case .cut: throw System.Failure(call: "send", code: ECONNRESET)
            case .notNow, .ended:
                guard .now < deadline else { throw Late(what: "the peer takes our bytes", place: "Conversation") }
                wait(for: POLLOUT, until: deadline)
            }
        }
    }

    func finishSending() { Socket.finishSending(descriptor) }
    func close() { end { Socket.close($0) } }
    func reset() { end { Socket.reset($0) } }

    private func end(_ how: (Int32) -> Void) {
        state.withLock { state in
            if state.isOpen { how(descriptor) }
            state.isOpen = false
        }
    }

    // MARK: - Receiving

    /// The next answer, to its end; it may also end cut off.
    func answer(to method: String = "GET", within limit: Duration = patience) throws -> Answer {
        let answer = try progress(to: method, within: limit) { $0.ending != .pending }
        state.withLock { state in
            state.unread = state.reader?.rest ?? []
            state.reader = nil
        }
        return answer
    }

    /// The next answer as soon as it is so far; calling `answer` goes on with it.
    @discardableResult
    func progress(
        to method: String = "GET", within limit: Duration = patience, until isSoFar: @Sendable (Answer) -> Bool
    ) throws -> Answer {
        let deadline = Instant.now + limit
        while true {
            let answer = reading(to: method)
            if isSoFar(answer) { return answer }
            let soFar = "\(answer.ending) after \(answer.head?.text ?? "no head") and \(answer.body.length) bytes"
            guard answer.ending == .pending else {
                throw Late(what: "more of the answer; \(soFar)", place: "Conversation")
            }
            guard receive(until: deadline) else { throw Late(what: "the answer; \(soFar)", place: "Conversation") }
        }
    }

    /// The answer that is being read; a new one begins with what was left over from the one before.
    private func reading(to method: String) -> Answer {
        state.withLock { state in
            if let reader = state.reader { return reader.answer }
            var reader = AnswerReader(to: method, askedAt: state.askedAt ?? .now)
            reader.read(state.unread[...], at: .now)
            if state.isEndedByPeer { reader.finish(.cutOff, at: .now) }
            state.reader = reader
            return reader.answer
        }
    }

    /// At least `count` raw bytes, outside of any answer (a tunnel).
    func bytes(_ count: Int, within limit: Duration = patience) throws -> [UInt8] {
        let deadline = Instant.now + limit
        while state.withLock({ $0.unread.count < count && !$0.isEndedByPeer }) {
            guard receive(until: deadline) else { throw Late(what: "\(count) bytes", place: "Conversation") }
        }
        return state.withLock { state in
            defer { state.unread = [] }
            return state.unread
        }
    }

    /// The raw bytes, outside of any answer, as soon as they end so.
    func text(endingIn end: String, within limit: Duration = patience) throws -> String {
        let deadline = Instant.now + limit
        while true {
            let text = String(decoding: state.withLock { $0.unread }, as: UTF8.self)
            if text.hasSuffix(end) { break }
            guard !isEndedByPeer, receive(until: deadline) else {
                throw Late(what: "\(end.debugDescription) behind \(text.debugDescription)", place: "Conversation")
            }
        }
        return state.withLock { state in
            defer { state.unread = [] }
            return String(decoding: state.unread, as: UTF8.self)
        }
    }

    /// Does the peer end the connection (by whatever means), with nothing more to say?
    func isClosed(within limit: Duration = .seconds(10)) -> Bool {
        let deadline = Instant.now + limit
        while !isEndedByPeer { guard receive(until: deadline) else { return false } }
        return state.withLock { $0.unread.isEmpty }
    }

    /// Reads once; false when the deadline came first.
    private func receive(until deadline: Instant) -> Bool {
        guard wait(for: POLLIN, until: deadline) else { return false }
        var bytes = [UInt8](repeating: 0, count: 65536)
        let outcome = Socket.read(descriptor, into: &bytes)
        state.withLock { state in
            switch outcome {
            case .bytes(let count):
                if state.reader == nil {
                    state.unread += bytes[..<count]
                } else {
                    state.reader!.read(bytes[..<count], at: .now)
                }
            case .ended, .cut, .failed:
                state.isEndedByPeer = true
                state.isReset = outcome != .ended
                state.reader?.finish(by: outcome, at: .now)
            case .notNow: break
            }
        }
        return true
    }

    @discardableResult
    private func wait(for events: Int32, until deadline: Instant) -> Bool {
        var entries = [pollfd(fd: descriptor, events: Int16(events), revents: 0)]
        Socket.poll(&entries, within: max(deadline - .now, .zero))
        return entries[0].revents != 0
    }
}
