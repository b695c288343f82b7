import Glibc
import Synchronization

/// The HTTP/2 of one descriptor of the tests, as its client: each request that the caller writes as text of HTTP/1.1
/// becomes a stream, and the caller reads the responses as such text, in the order of the requests. Content that the
/// caller has not read holds its stream back. Under a lock: a crowd's thread polls while the test closes.
///
/// ```
/// open ─the last response to be had is read→ over(ended)
/// open ─a stream is reset, when the caller has read what came of it→ over(cut)
/// ```
final class FramedSocket: SocketLayer {
    private struct State {
        let end: FramedEnd
        var splitter = RequestSplitter()
        /// The streams of the responses that the caller has not read, in the order of the requests.
        var order: ArraySlice<Int32> = []
        var responses: [Int32: FramedResponse] = [:]
        /// The stream of the request that the caller writes.
        var asking: Int32 = 0
        /// Frames that the wire has not taken.
        var waiting: [UInt8] = []
        /// Bytes of the caller of which frames wait.
        var owed = 0
        /// How the bytes of the wire ended.
        var wireEnd: Socket.Outcome?
        /// The end that the caller sees.
        var over: Socket.Outcome?
        var isFinishing = false
    }

    private let descriptor: Int32
    /// Below this.
    private let secured: SecuredSocket?
    private let state: Mutex<State>

    init(_ descriptor: Int32, over secured: SecuredSocket?) {
        self.descriptor = descriptor
        self.secured = secured
        state = Mutex(State(end: FramedEnd(scheme: secured == nil ? "http" : "https")))
    }

    // MARK: - As a socket

    /// Sends the preface (RFC 9113 §3.4).
    func begin() {
        secured?.begin()
        state.withLock { state in _ = flush(&state) }
    }

    func read(into buffer: inout [UInt8], atMost limit: Int) -> Socket.Outcome {
        state.withLock { state in
            let limit = min(limit, buffer.count)
            var received = 0
            flush(&state)
            repeat {
                received += fill(&buffer, received..<limit, &state)
            } while received < limit && state.over == nil && take(&state, atMost: limit - received + 64)
            // Windows.
            flush(&state)
            return received > 0 ? .bytes(received) : state.over ?? state.wireEnd ?? .notNow
        }
    }

    func write(_ bytes: ArraySlice<UInt8>) -> Socket.Outcome {
        state.withLock { state in
            guard state.over == nil else { return .failed(EPIPE) }
            if state.owed == 0 {
                let part = bytes.prefix(RequestSplitter.atOnce)
                guard let events = state.splitter.read(part) else { return .failed(EPROTO) }
                events.forEach { ask($0, &state) }
                state.owed = part.count
            }
            if let failure = flush(&state) { return failure }
            // Windows of the other end.
            while state.end.isHeldBack, take(&state, atMost: 16 << 10) {
                if let failure = flush(&state) { return failure }
            }
            guard state.waiting.isEmpty else { return .notNow }
            guard !state.end.isHeldBack else { return state.wireEnd == nil ? .notNow : .failed(EPIPE) }
            defer { state.owed = 0 }
            return .bytes(state.owed)
        }
    }

    /// The wire stays until the responses are read, if the last request is complete.
    func finishSending() {
        state.withLock { state in
            state.isFinishing = true
            if state.order.isEmpty || state.splitter.isAmidRequest { finishWire() }
        }
    }

    func sayEnd() { secured?.sayEnd() }

    private func finishWire() {
        if let secured { secured.finishSending() } else { _ = shutdown(descriptor, Int32(SHUT_WR)) }
    }

    func interest(for events: Int16) -> (events: Int16, isReady: Bool) {
        state.withLock { state in
            var asked = events
            let isHeldBack = state.owed > 0 && state.waiting.isEmpty
            if isHeldBack, events & Int16(POLLOUT) != 0 { asked = Int16(POLLIN) }
            if !state.waiting.isEmpty { asked |= Int16(POLLOUT) }
            let hasText = state.order.first.flatMap { state.responses[$0] }.map { !$0.isEmpty || $0.isCut } ?? false
            let isReady = events & Int16(POLLIN) != 0 && (hasText || state.over != nil || state.wireEnd != nil)
            guard let below = secured?.interest(for: asked) else { return (asked, isReady) }
            return (below.events, isReady || below.isReady)
        }
    }

    // MARK: - Requests and responses

    private func ask(_ event: RequestSplitter.Event, _ state: inout State) {
        switch event {
        case .head(let request):
            state.asking = state.end.submit(request)
            state.order.append(state.asking)
            state.responses[state.asking] = FramedResponse(to: request)
        case .content(let bytes): state.end.send(bytes, on: state.asking)
        case .end(let trailers): state.end.endContent(of: state.asking, trailers: trailers)
        }
    }

    /// Moves text of responses into `buffer`.
    private func fill(_ buffer: inout [UInt8], _ range: Range<Int>, _ state: inout State) -> Int {
        var filled = 0
        while state.over == nil, let stream = state.order.first, var response = state.responses[stream] {
            state.responses[stream] = nil
            let taken = response.take(into: &buffer, range.dropFirst(filled))
            filled += taken.all
            if taken.content > 0 { state.end.consumed(taken.content, of: stream) }
            if response.isCut { state.over = .cut }
            guard response.isOver else {
                state.responses[stream] = response
                break
            }
            state.order.removeFirst()
            if response.endsConnection { state.over = .ended }
            if state.isFinishing, state.order.isEmpty { finishWire() }
        }
        return filled
    }

    private func settle(_ state: inout State) {
        let events = state.end.takeEvents()
        // Before the heads that come with it.
        for event in events {
            switch event {
            case .closed(let stream, let refusesRest): if refusesRest { state.responses[stream]?.refuseRest() }
            case .goingAway: if let last = state.order.last { state.responses[last]?.announceEnd() }
            case .fields, .content, .ended: break
            }
        }
        for event in events {
            switch event {
            case .fields(let stream, let fields): state.responses[stream]?.add(fields)
            case .content(let stream, let bytes): state.responses[stream]?.add(content: bytes)
            case .ended(let stream): state.responses[stream]?.end()
            case .closed(let stream, _): state.responses[stream]?.close()
            case .goingAway: break
            }
        }
    }

    // MARK: - The wire

    /// Reads the wire once; false if there was nothing.
    private func take(_ state: inout State, atMost limit: Int) -> Bool {
        guard state.wireEnd == nil else { return false }
        var piece = [UInt8](repeating: 0, count: min(limit, 64 << 10))
        let outcome =
            secured?.read(into: &piece, atMost: piece.count)
            ?? Socket.readPlain(descriptor, into: &piece, atMost: piece.count)
        switch outcome {
        case .bytes(let count):
            if !state.end.give(piece[..<count]) { state.wireEnd = .failed(EPROTO) }
            settle(&state)
            return true
        case .notNow: return false
        case .ended, .cut, .failed:
            state.wireEnd = outcome
            return false
        }
    }

    /// Writes what the wire takes; gives a failure.
    @discardableResult
    private func flush(_ state: inout State) -> Socket.Outcome? {
        state.waiting += state.end.takeOutgoing()
        settle(&state)
        while !state.waiting.isEmpty {
            let outcome = secured?.write(state.waiting[...]) ?? Socket.writePlain(descriptor, state.waiting, from: 0)
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
