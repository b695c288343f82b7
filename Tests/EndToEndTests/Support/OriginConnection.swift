/// One connection of the origin: reads requests one after another and performs the script of each.
///
///     idle ─head→ scripted ─last step, body read→ idle        any ─close, reset, peer gone→ closed
struct OriginConnection {
    private enum Phase {
        case idle
        case scripted
        case tunnel
        case closed
    }

    let descriptor: Int32
    private let serial: Int
    private var phase = Phase.idle
    private var input: [UInt8] = []
    private var output: [UInt8] = []
    private var written = 0
    private var steps: [Step] = []
    private var request = -1
    private var ordinal = 0
    private var isHead = false
    private var requestBody = BodyReader.sized(0)
    private var askedGate = false
    private var isDeaf = false
    private(set) var wakeAt: Instant?
    /// Since when it waits for a request behind one that it has answered.
    private(set) var idleSince: Instant?

    /// Patterns are made in pieces of this size, as the kernel takes them.
    private static let piece = 65536

    init(descriptor: Int32, serial: Int) {
        self.descriptor = descriptor
        self.serial = serial
    }

    var isClosed: Bool { phase == .closed }
    var isIdle: Bool { phase == .idle && input.isEmpty }
    private var isFlushed: Bool { written == output.count }

    /// At a pause or a gate: to be looked at again whenever the thread wakes.
    var isWaiting: Bool {
        switch steps.last {
        case .wait, .gate: isFlushed && phase == .scripted
        default: false
        }
    }

    var interest: PollTable.Interest {
        let reading: PollTable.Interest = isDeaf ? [] : .reading
        return isFlushed ? reading : reading.union(.writing)
    }

    // MARK: - Bytes

    mutating func readAndWrite(_ received: inout Ledger, _ scratch: inout [UInt8]) {
        flush(&received)
        guard phase != .closed, !isDeaf else { return }
        switch Socket.read(descriptor, into: &scratch) {
        case .bytes(let count): input += scratch[..<count]
        case .notNow: break
        case .ended, .cut, .failed: lose(&received)
        }
    }

    private mutating func flush(_ received: inout Ledger) {
        guard !isFlushed else { return }
        switch Socket.write(descriptor, output, from: written) {
        case .bytes(let count):
            written += count
            if request >= 0 { received[request].sent += count }
        case .cut, .failed: lose(&received)
        case .notNow, .ended: break
        }
        if isFlushed {
            output.removeAll(keepingCapacity: true)
            written = 0
        }
    }

    /// The other side has gone.
    private mutating func lose(_ received: inout Ledger) {
        if phase == .scripted { received[request].wasAbandoned = true }
        close()
    }

    private mutating func close() {
        guard phase != .closed else { return }
        phase = .closed
        Socket.close(descriptor)
    }

    // MARK: - Script

    /// Does all that can be done now.
    mutating func proceed(
        _ received: inout Ledger, _ handlers: [String: ScriptedOrigin.Handler], _ wake: @escaping @Sendable () -> Void
    ) {
        while phase != .closed {
            readBody(&received)
            guard isFlushed else { return }
            switch phase {
            case .closed: return
            case .idle: guard begin(&received, handlers) else { return }
            case .tunnel:
                guard !input.isEmpty else { return }
                send(input)
                input = []
            case .scripted:
                if steps.isEmpty {
                    guard requestBody.isEnded else { return }
                    phase = .idle
                    idleSince = .now
                } else {
                    guard perform(wake) else { return }
                }
            }
            flush(&received)
        }
    }

    private mutating func begin(_ received: inout Ledger, _ handlers: [String: ScriptedOrigin.Handler]) -> Bool {
        guard let end = Head.end(in: input, from: 0) else { return false }
        let head = Head(Array(input[..<end]))
        input.removeFirst(end)
        requestBody = head.isChunked ? .chunked : .sized(head.contentLength ?? 0)
        received.append(head, connection: serial, ordinal: ordinal)
        request = received.last
        isHead = received[request].method == "HEAD"
        ordinal += 1
        idleSince = nil
        readBody(&received)
        let handler = handlers[received[request].path] ?? handlers["*"] ?? { _ in [.answer(404, body: "no script")] }
        steps = Step.unfolded(handler(received[request]))
        phase = .scripted
        return true
    }

    private mutating func readBody(_ received: inout Ledger) {
        guard phase != .tunnel, request >= 0, !received[request].isWhole else { return }
        input.removeFirst(requestBody.read(input, from: 0, into: &received[request].body))
        received[request].isWhole = requestBody.isEnded
        received[request].isInChunk = requestBody.isInChunk
    }

    private mutating func send(_ bytes: [UInt8]) { output += bytes }

    /// Performs the next step; false when it has to wait.
    private mutating func perform(_ wake: @escaping @Sendable () -> Void) -> Bool {
        guard let step = steps.popLast() else { return false }
        switch step {
        case .bytes(let bytes): send(bytes)
        case .start(let status, let fields): send(Step.headBytes(status, fields))
        case .payload(let bytes): if !isHead { send(bytes) }
        case .stream(let pattern, let range):
            guard !isHead else { break }
            let middle = min(range.lowerBound + Self.piece, range.upperBound)
            send(pattern.bytes(range.lowerBound..<middle))
            if middle < range.upperBound { steps.append(.stream(pattern, middle..<range.upperBound)) }
        case .wait(let duration):
            let deadline = wakeAt ?? .now + duration
            wakeAt = deadline
            guard deadline <= .now else {
                steps.append(step)
                return false
            }
            wakeAt = nil
        case .gate(let gate):
            guard gate.isOpen else {
                steps.append(step)
                if !askedGate { gate.whenOpen(wake) }
                askedGate = true
                return false
            }
            askedGate = false
        case .requestBody:
            guard requestBody.isEnded else {
                steps.append(step)
                return false
            }
        case .deaf(let deaf): isDeaf = deaf
        case .echo: phase = .tunnel
        case .silence:
            steps.append(step)
            return false
        case .close: close()
        case .reset:
            phase = .closed
            Socket.reset(descriptor)
        case .several: break // unfolded before
        }
        return true
    }
}
