/// A load generator as light as its requests allow, so that one core can keep a server on another one busy:
/// connections, one `epoll`, requests that are ready to send, one `send` and one `recv` per request. No byte of a body
/// is examined or copied unnecessarily.
///
/// Nearly all of the load's cost is the kernel's: four fifths are `send`, half of it the server's side of the
/// loopback's TCP. So there is little in this code that could be saved, and `io_uring`, which saves the system calls'
/// own cost, was more expensive than `epoll`.
///
/// **Waiting.** The loop spins: it polls without sleeping, and lets the origin, which spins as well, have the core in
/// between. A client or an origin that sleeps must be woken by the server's `send`, at the server's expense (on the
/// machine on which this was written, 1 MiB then cost the server twice as much, and a pass a microsecond more). The
/// loop measures its time with and without work, so that one can tell whether the load or the server was the
/// bottleneck.
///
/// If a second worker needs the same core, the load takes precedence over it and polls every 100 µs, like a network
/// card's interrupts. Both workers then always have work. With a load that slept until it was woken, the workers mostly
/// waited for the load, and the time in which they went to sleep, a fifth of all, looked like the cost of a second
/// worker.
///
/// **A connection** has at most one request outstanding, or one batch of pipelined requests:
///
///     absent ─connect→ sending ─all written→ awaiting ─last byte of the last response→ sending …
///
/// - `sending` begins while the connection is still being made; until it is established, the kernel accepts no bytes.
/// - If the response says that it is the last one, or if each request needs a new connection: closed, and `absent` for
///   no time.
/// - If the server closes or resets, or sends bytes that are no response, or more than was requested: one failure;
///   `absent`.
/// - If the server accepts or sends no bytes: after `patience` without the whole response, one failure; `absent`. At
///   the end of a run, requests that have been outstanding for that long count as failures too; other outstanding
///   requests do not.
/// - If no program listens, or no port is free: one failure; `absent`. An absent connection is tried again within a
///   millisecond.
/// - A response that comes before its request is written whole is read afterwards, or found when the connection breaks.
struct LoadLoop {
    /// Responses with the expected status and length, and all others.
    private(set) var answers = 0
    private(set) var wrong = 0
    /// Connections that broke, with their outstanding requests, or that could not be made.
    private(set) var failures = 0
    private(set) var latencies = Latencies()
    /// Nanoseconds from the first request to the end, and nanoseconds of CPU time in which the loop spun without work.
    private(set) var elapsed: Int64 = 0
    private(set) var idle: Int64 = 0

    private enum Phase {
        case absent
        case sending(written: Int)
        case awaiting(answers: Int)
    }

    private struct Connection {
        var phase = Phase.absent
        var descriptor: Int32 = -1
        var isWatchedForWriting = false
        var reader = AnswerReader()
        /// The bytes of an incomplete head.
        var pieces: [UInt8] = []
        /// The time at which the request was sent.
        var asked: Int64 = 0
    }

    private let port: Int
    private let expected: (status: Int, length: Int)
    private let isRenewing: Bool
    private let takesTurns: Bool
    private var request: RequestText
    private var parser = AnswerHeadParser()
    private var connections: [Connection]
    private var polled = System.PollSet()
    private var buffer = [UInt8](repeating: 0, count: 1 << 14)
    /// The last reading of the clock.
    private var now = System.now

    /// The time, in nanoseconds, after which a request without its whole response has failed.
    private static let patience: Int64 = 1_000_000_000
    /// Microseconds between two polls of a load that takes turns.
    private static let turn = 100

    /// - Parameters:
    ///   - isRenewing: whether each request gets a connection of its own.
    ///   - takesTurns: whether the load polls every 100 µs, before all other threads on its core, instead of spinning.
    init(
        port: Int, connections: Int, request: RequestText, status: Int, length: Int, isRenewing: Bool, takesTurns: Bool
    ) {
        self.port = port
        self.request = request
        self.isRenewing = isRenewing
        self.takesTurns = takesTurns
        expected = (status, length)
        self.connections = Array(repeating: Connection(), count: connections)
    }

    /// Sends requests for this long. `during` is called once a millisecond with the nanoseconds that have passed.
    mutating func run(nanoseconds: Int64, during: (Int64) -> Void) {
        let began = System.now
        now = began
        var due = began
        var spinning = IdleTime()
        if takesTurns { System.prefersThisThread(true) }
        for place in connections.indices { connect(place) }
        while now - began < nanoseconds {
            let ready = polled.wait(milliseconds: 0)
            if takesTurns { System.nap(microseconds: Self.turn) } else { spinning.polled(foundNothing: ready.isEmpty) }
            now = System.now
            for tag in ready { serve(Int(tag)) }
            if now >= due {
                due += 1_000_000
                mend()
                during(now - began)
            }
        }
        if takesTurns { System.prefersThisThread(false) }
        idle = spinning.total
        elapsed = now - began
        for place in connections.indices {
            if isOverdue(connections[place]) { failures += 1 }
            close(place)
        }
        polled.close()
    }

    private mutating func serve(_ place: Int) {
        switch connections[place].phase {
        case .absent: break
        case .sending: send(place)
        case .awaiting: receive(place)
        }
    }

    // MARK: - Connections

    private mutating func connect(_ place: Int) {
        guard let descriptor = System.beginConnect(port: port) else {
            failures += 1
            return
        }
        connections[place].descriptor = descriptor
        connections[place].isWatchedForWriting = false
        connections[place].reader = AnswerReader()
        connections[place].pieces = []
        polled.add(descriptor, tag: place)
        ask(place)
    }

    private mutating func close(_ place: Int) {
        if connections[place].descriptor >= 0 { System.close(connections[place].descriptor) }
        connections[place].descriptor = -1
        connections[place].phase = .absent
    }

    private mutating func renew(_ place: Int) {
        close(place)
        connect(place)
    }

    private mutating func fail(_ place: Int) {
        failures += 1
        // The connection is not made again at once: a server that refuses all connections would keep this loop busy.
        close(place)
    }

    private func isOverdue(_ connection: Connection) -> Bool {
        switch connection.phase {
        case .absent: false
        case .sending, .awaiting: now - connection.asked > Self.patience
        }
    }

    /// Ends connections that take too long, and makes absent ones again.
    private mutating func mend() {
        for place in connections.indices {
            if isOverdue(connections[place]) { fail(place) }
            if case .absent = connections[place].phase { connect(place) }
        }
    }

    // MARK: - Requests and answers

    private mutating func ask(_ place: Int) {
        connections[place].phase = .sending(written: 0)
        connections[place].asked = now
        send(place)
    }

    private mutating func send(_ place: Int) {
        guard case .sending(let written) = connections[place].phase else { return }
        if written == 0 { request.advance() }
        let count = System.write(connections[place].descriptor, request.bytes, from: written)
        // By the time the rest could be sent, the text may contain another connection's number. So a request with a
        // number, which is short, must go out whole.
        guard count >= 0, written + count == request.bytes.count || count == 0 || request.isConstant else {
            return fail(place)
        }
        let isWhole = written + count == request.bytes.count
        connections[place].phase = isWhole ? .awaiting(answers: request.count) : .sending(written: written + count)
        if connections[place].isWatchedForWriting == isWhole {
            connections[place].isWatchedForWriting = !isWhole
            polled.modify(connections[place].descriptor, tag: place, writing: !isWhole)
        }
    }

    private mutating func receive(_ place: Int) {
        // The rest of a body is discarded unread, and right after its beginning if that filled the buffer, since there
        // is more.
        let kept = connections[place].pieces.count
        if connections[place].reader.bodyLeft == 0 {
            if kept > 0 { buffer.replaceSubrange(..<kept, with: connections[place].pieces) }
            guard let count = System.read(connections[place].descriptor, into: &buffer, from: kept) else { return }
            guard count > 0 else { return ended(place, isBroken: count < 0) }
            guard take(place, kept + count), kept + count == buffer.count, connections[place].reader.bodyLeft > 0 else {
                return
            }
        }
        guard let count = System.discard(connections[place].descriptor, most: connections[place].reader.bodyLeft) else {
            return
        }
        guard count > 0 else { return ended(place, isBroken: count < 0) }
        _ = finish(place, connections[place].reader.skip(count))
    }

    /// Reads the responses in the buffer. Returns whether the same connection waits for more bytes.
    private mutating func take(_ place: Int, _ count: Int) -> Bool {
        var position = 0
        if !connections[place].pieces.isEmpty { connections[place].pieces = [] }
        while position < count {
            let outcome = connections[place].reader.read(buffer, count: count, &position, &parser)
            if outcome == .more {
                guard position > 0 || count < buffer.count else { fail(place); return false }
                if position < count { connections[place].pieces = Array(buffer[position..<count]) }
                return true
            }
            // More bytes than were requested.
            if position < count, case .awaiting(1) = connections[place].phase { fail(place); return false }
            guard finish(place, outcome) else { return false }
        }
        return true
    }

    /// Returns whether the same connection waits for more bytes.
    private mutating func finish(_ place: Int, _ outcome: AnswerReader.Outcome) -> Bool {
        switch outcome {
        case .more: return true
        case .malformed:
            fail(place)
            return false
        case .answer(let answer):
            guard case .awaiting(let left) = connections[place].phase else { return false }
            now = System.now
            latencies.add(nanoseconds: now - connections[place].asked)
            if answer.status == expected.status, answer.length == expected.length { answers += 1 } else { wrong += 1 }
            if left > 1, !answer.closes {
                connections[place].phase = .awaiting(answers: left - 1)
                return true
            }
            if left > 1 { failures += 1 }
            if answer.closes || isRenewing { renew(place) } else { ask(place) }
            return false
        }
    }

    private mutating func ended(_ place: Int, isBroken: Bool) {
        if !isBroken, let answer = connections[place].reader.ended() {
            _ = finish(place, .answer(answer))
        } else {
            fail(place)
        }
    }
}
