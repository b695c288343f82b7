import Glibc

/// A client of HTTP/2 that sends what frames a test likes and keeps what comes back. Sending reads too, so that neither
/// side waits for the other. Confined to the test's thread; every wait has an end.
final class FramePeer {
    private let descriptor: Int32
    private let decoder = FieldDecoder()
    private var input: [UInt8] = []
    private var output: [UInt8] = []
    private var scratch = [UInt8](repeating: 0, count: 256 << 10)
    /// The field section that goes on in CONTINUATION frames.
    private var section: (stream: Int, ends: Bool, block: [UInt8])?
    private var nextStream = 1
    /// Bytes that came since the last WINDOW_UPDATE of a stream; of stream 0: of all.
    private var taken: [Int: Int] = [:]

    /// Whether what comes is read at all.
    var isReading = true
    /// Whether windows are opened again.
    var opensWindows = true
    /// Streams whose windows are not.
    var heldStreams: Set<Int> = []
    var initialWindow = 65_535
    /// Whether PINGs are answered at once.
    var answersPings = true
    /// Whether SETTINGS are acknowledged: what is sent piece by piece bears no frame in between.
    private let acknowledges: Bool
    private var owedPings: [[UInt8]] = []

    private(set) var answers: [Int: StreamAnswer] = [:]
    private(set) var goAways: [(last: Int, code: ErrorCode)] = []
    private(set) var settings: [UInt16: Int] = [:]
    /// What the program lets us send, beside the initial windows; of stream 0: of all.
    private var opened: [Int: Int] = [:]
    /// Content that we have sent.
    private var contentSent: [Int: Int] = [:]
    private(set) var pongs: [[UInt8]] = []
    /// How many frames of each kind have come.
    private(set) var counts: [UInt8: Int] = [:]
    /// What came is no HTTP/2.
    private(set) var isBroken = false
    /// The program takes nothing more.
    private(set) var isRefused = false
    /// The program has ended the connection, and all it sent was read.
    private(set) var isEnded = false
    private(set) var isReset = false

    static let patience = Duration.seconds(20)

    /// Connects, and sends the preface and SETTINGS.
    /// - Parameters:
    ///   - window: of each stream, and as much more for the connection.
    ///   - begins: false: the test sends the preface and SETTINGS itself.
    init(
        with peer: some Peer, _ settings: [(UInt16, Int)] = [], window: Int? = nil, receiveBuffer: Int32? = nil,
        begins: Bool = true
    ) throws {
        acknowledges = begins
        descriptor = try Socket.connect(to: peer.endpoint, receiveBuffer: receiveBuffer)
        var entries = [pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)]
        Socket.poll(&entries, within: Self.patience)
        if let code = Socket.failure(of: descriptor) {
            Socket.close(descriptor)
            throw System.Failure(call: "connect \(peer.endpoint)", code: code)
        }
        guard begins else { return }
        output = Frame.preface
        if let window { initialWindow = window }
        let own = window.map { [(Frame.Parameter.initialWindow, $0)] } ?? []
        try send([.settings(settings + own)])
        if let window, window > 0 { try send([.windowUpdate(0, window)]) }
    }

    deinit { Socket.close(descriptor) }

    var goAway: ErrorCode? { goAways.last?.code }
    /// The program has ended it, or takes nothing more.
    var isOver: Bool { isEnded || isRefused }
    var openStreams: Int { answers.values.count { !$0.isOver } }

    // MARK: - Sending

    func send(_ frames: Frame...) throws { try send(frames) }
    func send(_ frames: [Frame]) throws {
        for frame in frames where frame.kind == Frame.Kind.data {
            for id in [0, frame.stream] { contentSent[id, default: 0] += frame.payload.count }
        }
        try send(bytes: frames.flatMap(\.bytes))
    }

    /// How much content a stream may send now.
    func sendRoom(of stream: Int) -> Int {
        let initial = settings[Frame.Parameter.initialWindow] ?? 65_535
        func room(_ id: Int, _ initial: Int) -> Int { initial + (opened[id] ?? 0) - (contentSent[id] ?? 0) }
        return min(room(0, 65_535), room(stream, initial))
    }

    /// Sends all, unless the program takes no more.
    func send(bytes: [UInt8]) throws {
        guard try offer(bytes, within: Self.patience) else {
            throw Late(what: "our frames are taken", place: "FramePeer")
        }
    }

    /// The same, for so long; false when some are left, which go first next time.
    func offer(_ bytes: [UInt8], within limit: Duration) throws -> Bool {
        output += bytes
        let deadline = Instant.now + limit
        while !output.isEmpty, !isOver {
            guard step(until: deadline) else { return false }
        }
        return true
    }

    /// Opens the next stream.
    @discardableResult
    func open(_ block: FieldBlock, ends: Bool = true) throws -> Int {
        let stream = newStream()
        try send(.headers(stream, block, ends: ends))
        return stream
    }

    @discardableResult
    func get(_ path: String, _ fields: [Field] = []) throws -> Int { try open(.request("GET", path, fields)) }

    /// A number for a stream that the caller opens itself.
    func newStream() -> Int {
        defer { nextStream += 2 }
        answers[nextStream] = StreamAnswer(askedAt: .now)
        return nextStream
    }

    /// What the content of a stream is to be, if not the usual pattern.
    func expect(_ pattern: Pattern, on stream: Int) { answers[stream]?.body.pattern = pattern }

    func finishSending() { Socket.finishSending(descriptor) }

    // MARK: - Receiving

    func answer(_ stream: Int) -> StreamAnswer { answers[stream] ?? StreamAnswer() }

    /// The answer on a stream, to its end.
    func finished(_ stream: Int, within limit: Duration = patience) throws -> StreamAnswer {
        try wait("the answer on stream \(stream)", within: limit) { $0.answer(stream).isOver || $0.isEnded }
        return answer(stream)
    }

    /// A whole GET.
    func fetch(_ path: String, _ fields: [Field] = []) throws -> StreamAnswer { try finished(get(path, fields)) }

    func wait(
        _ what: String, within limit: Duration = patience, until isSo: (FramePeer) throws -> Bool
    ) throws {
        let deadline = Instant.now + limit
        while try !isSo(self) {
            guard !isEnded, step(until: deadline) else {
                throw Late(what: "\(what); \(soFar)", place: "FramePeer")
            }
        }
    }

    /// Reads on for `time`, or until the connection ends.
    func listen(for time: Duration) {
        let deadline = Instant.now + time
        while !isEnded, step(until: deadline) {}
    }

    /// Does the program end the connection?
    func isClosed(within limit: Duration = .seconds(10)) -> Bool {
        listen(for: limit)
        return isEnded
    }

    var soFar: String {
        let last = goAways.map { "GOAWAY \($0.code) after \($0.last)" }.joined(separator: ", ")
        let streams = answers.sorted { $0.key < $1.key }.suffix(4).map { "\($0.key): \($0.value.soFar)" }
        let end = isEnded ? isReset ? "reset" : "ended" : isRefused ? "refused" : "open"
        return "\(end); \(last.isEmpty ? "no GOAWAY" : last); \(streams.joined(separator: "; "))"
    }

    /// Writes and reads what is possible; false when the deadline came first.
    @discardableResult
    private func step(until deadline: Instant) -> Bool {
        var events: Int16 = 0
        if isReading { events |= Int16(POLLIN) }
        if !output.isEmpty, !isRefused { events |= Int16(POLLOUT) }
        var entries = [pollfd(fd: descriptor, events: events, revents: 0)]
        Socket.poll(&entries, within: max(deadline - .now, .zero))
        let ready = entries[0].revents
        guard ready != 0 else { return false }
        if events & Int16(POLLOUT) != 0, ready & Int16(POLLOUT | POLLERR | POLLHUP) != 0 { write() }
        if isReading { read() } else if ready & Int16(POLLERR | POLLHUP) != 0 { end(isReset: true) }
        return true
    }

    private func write() {
        switch Socket.write(descriptor, output, from: 0) {
        case .bytes(output.count): output.removeAll(keepingCapacity: true)
        case .bytes(let count): output.removeFirst(count)
        case .notNow: break
        case .ended, .cut, .failed:
            isRefused = true
            output = []
        }
    }

    private func end(isReset: Bool) {
        isEnded = true
        self.isReset = isReset
    }

    private func read() {
        switch Socket.read(descriptor, into: &scratch) {
        case .bytes(let count):
            input += scratch[..<count]
            takeFrames()
        case .notNow: break
        case .ended: end(isReset: false)
        case .cut, .failed: end(isReset: true)
        }
    }

    private func takeFrames() {
        var start = 0
        while input.count - start >= 9 {
            let count = Frame.number(input[start..<start + 3])
            guard input.count - start - 9 >= count else { break }
            let stream = Frame.number(input[start + 5..<start + 9]) & 0x7FFF_FFFF
            took(input[start + 3], input[start + 4], stream, input[start + 9..<start + 9 + count])
            start += 9 + count
        }
        input.removeFirst(start)
        if !output.isEmpty, !isRefused { write() }
    }

    // MARK: - Frames

    private func took(_ kind: UInt8, _ flags: UInt8, _ stream: Int, _ payload: ArraySlice<UInt8>) {
        counts[kind, default: 0] += 1
        let ends = flags & Frame.Flag.endsStream != 0
        switch kind {
        case Frame.Kind.data:
            answers[stream, default: StreamAnswer()].body.append(payload)
            answers[stream]?.pieces += 1
            if ends { complete(stream) }
            tookContent(of: stream, payload.count, ends: ends)
        case Frame.Kind.headers:
            section = (stream, ends, Array(payload))
            if flags & Frame.Flag.endsFields != 0 { takeSection() }
        case Frame.Kind.continuation:
            section?.block += payload
            if flags & Frame.Flag.endsFields != 0 { takeSection() }
        case Frame.Kind.reset:
            answers[stream, default: StreamAnswer()].reset = Self.code(payload)
            answers[stream]?.endedAt = .now
        case Frame.Kind.settings where flags & Frame.Flag.acknowledges == 0:
            for start in stride(from: payload.startIndex, to: payload.endIndex - 5, by: 6) {
                settings[UInt16(Frame.number(payload[start..<start + 2]))] = Frame.number(
                    payload[start + 2..<start + 6])
            }
            if acknowledges { output += Frame.settingsAcknowledged.bytes }
        case Frame.Kind.ping where flags & Frame.Flag.acknowledges != 0: pongs.append(Array(payload))
        case Frame.Kind.ping:
            owedPings.append(Array(payload))
            if answersPings { answerPings() }
        case Frame.Kind.windowUpdate: opened[stream, default: 0] += Frame.number(payload)
        case Frame.Kind.goAway:
            goAways.append((Frame.number(payload.prefix(4)) & 0x7FFF_FFFF, Self.code(payload.dropFirst(4))))
        default: break
        }
    }

    private func answerPings() {
        for payload in owedPings {
            output += Frame(kind: Frame.Kind.ping, flags: Frame.Flag.acknowledges, payload: payload).bytes
        }
        owedPings = []
    }

    /// Answers those that have come, and from now on at once.
    func beginAnsweringPings() throws {
        answersPings = true
        answerPings()
        try send(bytes: [])
    }

    private static func code(_ payload: ArraySlice<UInt8>) -> ErrorCode {
        ErrorCode(number: UInt32(Frame.number(payload.prefix(4))))
    }

    private func takeSection() {
        guard let section, let fields = decoder.fields(section.block) else {
            isBroken = true
            return
        }
        answers[section.stream, default: StreamAnswer()].accept(fields)
        if section.ends { complete(section.stream) }
        self.section = nil
    }

    private func complete(_ stream: Int) {
        answers[stream]?.isComplete = true
        answers[stream]?.endedAt = .now
    }

    private func tookContent(of stream: Int, _ count: Int, ends: Bool) {
        guard opensWindows, !isRefused else { return }
        for id in [0, stream] where id == 0 || !(ends || heldStreams.contains(id)) {
            taken[id, default: 0] += count
            guard let open = taken[id], open >= max(1, initialWindow / 2) else { continue }
            output += Frame.windowUpdate(id, open).bytes
            taken[id] = 0
        }
    }
}
