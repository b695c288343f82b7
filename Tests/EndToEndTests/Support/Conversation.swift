import Glibc

/// One client connection, used step by step by the test itself: any bytes out, answers in. Every wait has an end.
final class Conversation {
    private let descriptor: Int32
    private var isOpen = true
    private var unread: [UInt8] = []
    private var scratch = [UInt8](repeating: 0, count: 65536)
    private(set) var isEndedByPeer = false
    private var reader: AnswerReader?

    static let patience = Duration.seconds(20)

    init(with endpoint: Endpoint) throws {
        descriptor = try Socket.connect(to: endpoint)
        wait(for: POLLOUT, until: .now + Self.patience)
        if let code = Socket.failure(of: descriptor) {
            Socket.close(descriptor)
            isOpen = false
            throw System.Failure(call: "connect \(endpoint)", code: code)
        }
    }

    deinit { close() }

    // MARK: - Sending

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        let deadline = Instant.now + Self.patience
        var sent = 0
        while sent < bytes.count {
            switch Socket.write(descriptor, bytes, from: sent) {
            case .bytes(let count): sent += count
            case .failed(let code): throw System.Failure(call: "send", code: code)
            case .notNow, .ended:
                guard .now < deadline else { throw Late(what: "the peer takes our bytes", place: "Conversation") }
                wait(for: POLLOUT, until: deadline)
            }
        }
    }

    /// As much of `bytes` as the peer takes until it has taken nothing for `pause`; how much that was.
    func sendWhatFits(_ bytes: [UInt8], pause: Duration) throws -> Int {
        var sent = 0
        while sent < bytes.count {
            switch Socket.write(descriptor, bytes, from: sent) {
            case .bytes(let count): sent += count
            case .failed(let code): throw System.Failure(call: "send", code: code)
            case .notNow, .ended:
                guard wait(for: POLLOUT, until: .now + pause) else { return sent }
            }
        }
        return sent
    }

    func finishSending() { Socket.finishSending(descriptor) }

    func close() {
        if isOpen { Socket.close(descriptor) }
        isOpen = false
    }

    func reset() {
        if isOpen { Socket.reset(descriptor) }
        isOpen = false
    }

    // MARK: - Receiving

    /// The next answer, to its end; it may also end cut off.
    func answer(to method: String = "GET", within limit: Duration = patience) throws -> Answer {
        let answer = try progress(to: method, within: limit) { $0.ending != .pending }
        unread = reader?.rest ?? []
        reader = nil
        return answer
    }

    /// The next answer as soon as it is so far; calling `answer` goes on with it.
    @discardableResult
    func progress(
        to method: String = "GET", within limit: Duration = patience, until isSoFar: (Answer) -> Bool
    ) throws -> Answer {
        let deadline = Instant.now + limit
        if reader == nil {
            reader = AnswerReader(to: method, askedAt: .now)
            reader!.read(unread[...], at: .now)
        }
        while !isSoFar(reader!.answer) {
            let answer = reader!.answer
            guard answer.ending == .pending else { throw Late(what: "more of the answer: \(answer.ending)", place: "Conversation") }
            guard receive(until: deadline) else {
                throw Late(what: "the answer: \(answer.head?.text ?? "nothing") \(answer.body.length)", place: "Conversation")
            }
        }
        return reader!.answer
    }

    /// At least `count` raw bytes, outside of any answer (a tunnel).
    func bytes(_ count: Int, within limit: Duration = patience) throws -> [UInt8] {
        let deadline = Instant.now + limit
        while unread.count < count, !isEndedByPeer {
            guard receive(until: deadline) else { throw Late(what: "\(count) bytes", place: "Conversation") }
        }
        defer { unread = [] }
        return unread
    }

    /// Does the peer end the connection (by whatever means), with nothing more to say?
    func isClosed(within limit: Duration = .seconds(10)) -> Bool {
        let deadline = Instant.now + limit
        while !isEndedByPeer { guard receive(until: deadline) else { return false } }
        return unread.isEmpty
    }

    /// Reads once; false when the deadline came first.
    private func receive(until deadline: Instant) -> Bool {
        guard wait(for: POLLIN, until: deadline) else { return false }
        let outcome = Socket.read(descriptor, into: &scratch)
        switch outcome {
        case .bytes(let count):
            if reader == nil { unread += scratch[..<count] } else { reader!.read(scratch[..<count], at: .now) }
        case .ended, .failed:
            isEndedByPeer = true
            reader?.finish(outcome == .ended ? .cutOff : .reset, at: .now)
        case .notNow: break
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
