/// A load generator as light as its requests allow, so that one core can keep a server on another one busy:
/// connections, one `epoll`, requests that are ready to send, one `send` and one `recv` per request, and no byte of a
/// body examined or copied unnecessarily.
///
/// What the load costs is nearly all the kernel's: four fifths are `send`, half of it the server's side of the
/// loopback's TCP. So there is little in here that could be saved, and `io_uring`, which saves the system calls' own
/// cost, came out dearer than `epoll`.
///
/// **Waiting.** It spins: it polls without sleeping, and lets the origin, which spins as well, have the core in
/// between. A client or an origin that sleeps must be woken by the server's `send`, on the server's account (on the
/// machine this was written on, 1 MiB then cost the server twice as much, and a pass a microsecond more). What the
/// spinning found to do, and for how long nothing, is kept, so that one can tell whether the load or the server was the
/// bottleneck.
///
/// Where a second worker needs the same core, the load goes before it and looks every 100 µs for what has come, as a
/// network card's interrupts would. Then both workers always have something to do. With a load that slept until it was
/// woken they mostly waited for it, and their going to sleep, a fifth of their time, looked like what a second worker
/// costs.
///
/// **A connection**, of which each has at most one request out, or one batch of pipelined ones:
///
///     absent ─connect→ sending ─all written→ awaiting ─last byte of the last answer→ sending …
///
/// - `sending` begins while the connection is still being made; the kernel then takes nothing until it stands.
/// - The answer says that it is the last one, or each request shall have a new connection: closed, and `absent` for no
///   time.
/// - The server closes or resets, sends what is no answer, or more than was asked for: one failure; `absent`.
/// - The server takes or sends nothing: after `patience` without the whole answer one failure; `absent`. Requests that
///   are out for that long at the end of a run count as well; others that are out then do not.
/// - Nobody listens, or no port is free: one failure; `absent`. What is absent is tried again within a millisecond.
/// - An answer that comes before its request is written whole is read after that, or found when the connection breaks.
struct LoadLoop {
    /// Answers with the status and the length that were expected, and the others.
    private(set) var answers = 0
    private(set) var wrong = 0
    /// Connections that broke, with what was out on them, or could not be made.
    private(set) var failures = 0
    private(set) var latencies = Latencies()
    /// Nanoseconds from the first request to the end, and those of its CPU in which it spun and found nothing to do.
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
        /// The bytes of a head whose rest has not come.
        var pieces: [UInt8] = []
        /// When the request went out.
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
    /// The clock as it was read last.
    private var now = System.now

    /// Without its whole answer for this long, a request has failed; nanoseconds.
    private static let patience: Int64 = 1_000_000_000
    /// Microseconds between two turns.
    private static let turn = 100

    /// - Parameters:
    ///   - isRenewing: each request gets a connection of its own.
    ///   - takesTurns: does not spin, but looks every 100 µs, before all others on its core.
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

    /// Asks for so long. `during` is called once a millisecond with the nanoseconds that are over.
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
        // Not at once: otherwise a server that refuses everyone would keep this loop busy.
        close(place)
    }

    private func isOverdue(_ connection: Connection) -> Bool {
        switch connection.phase {
        case .absent: false
        case .sending, .awaiting: now - connection.asked > Self.patience
        }
    }

    /// Gives up what takes too long, and connects what is not.
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
        // Another one's number may stand in the text when the rest could go: short requests go whole.
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
        // A body's rest goes unread, and straight after its beginning if that filled the buffer: there is more.
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

    /// Reads the answers that are in the buffer. Whether this connection, as it is, waits for more of them.
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
            // More than was asked for.
            if position < count, case .awaiting(1) = connections[place].phase { fail(place); return false }
            guard finish(place, outcome) else { return false }
        }
        return true
    }

    /// Whether more answers are awaited on this connection, as it is.
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
