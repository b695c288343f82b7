/// What one client got for one request, with the times at which it got it.
struct Answer: Sendable {
    enum Ending: Sendable, Equatable {
        /// Still running.
        case pending
        /// The framing says that all of it has come.
        case clean
        /// The connection ended before.
        case cutOff
        case reset
        /// No connection came about.
        case refused
        /// This client went away itself.
        case left
    }

    var ending = Ending.pending
    var head: Head?
    var interim: [Head] = []
    var body = Body()
    var askedAt: Instant?
    var headAt: Instant?
    var firstByteAt: Instant?
    var endedAt: Instant?

    var status: Int { head?.status ?? 0 }
    var text: String { body.text }
    var isClean: Bool { ending == .clean }
    /// Whether it announces the end of its connection. Over HTTP/2 its stream ends, and may do so a moment later.
    var announcesEnd: Bool { Transport.current.isFramedToClients || self["connection"] == "close" }
    /// Ended cleanly, with the whole of the expected pattern.
    func isWhole(_ length: Int) -> Bool { isClean && body.length == length && body.isIntact }

    subscript(name: String) -> String? { head?[name] }
    var cacheStatus: String { head?["cache-status"] ?? "" }

    /// From sending the request to the end of the answer.
    var took: Duration {
        guard let askedAt, let endedAt else { return .seconds(1_000_000) }
        return endedAt - askedAt
    }

    /// From sending the request to the first byte of the body.
    var firstByteTook: Duration {
        guard let askedAt, let firstByteAt else { return .seconds(1_000_000) }
        return firstByteAt - askedAt
    }
}

/// Takes an answer, with the interim ones before it, out of the bytes of a connection.
struct AnswerReader: Sendable {
    private(set) var answer = Answer()
    /// Bytes that came and do not belong to this answer.
    private(set) var rest: [UInt8] = []
    private let method: String
    private var framing: BodyReader?

    init(to method: String, pattern: Pattern = Pattern(), askedAt: Instant) {
        self.method = method
        answer.askedAt = askedAt
        answer.body.pattern = pattern
    }

    mutating func read(_ bytes: ArraySlice<UInt8>, at now: Instant) {
        guard answer.ending == .pending else { return rest += bytes }
        var bytes = rest + bytes
        rest = []
        var index = 0
        while framing == nil {
            guard let end = Head.end(in: bytes, from: index) else { return rest = Array(bytes[index...]) }
            accept(Head(Array(bytes[index..<end])), at: now)
            index = end
        }
        let before = answer.body.length
        index = framing!.read(bytes, from: index, into: &answer.body)
        if before == 0, answer.body.length > 0 { answer.firstByteAt = now }
        if framing!.isEnded { finish(.clean, at: now) }
        bytes.removeFirst(index)
        rest = bytes
    }

    /// The connection has ended, or we end it.
    mutating func finish(_ ending: Answer.Ending, at now: Instant) {
        guard answer.ending == .pending else { return }
        answer.ending = ending == .cutOff && framing?.phase == .untilClose ? .clean : ending
        answer.endedAt = now
    }

    /// The peer has ended the connection. An end that TLS does not tell may be anybody's: no body ends by it.
    mutating func finish(by outcome: Socket.Outcome, at now: Instant) {
        switch outcome {
        case .ended: finish(.cutOff, at: now)
        case .cut: finish(framing?.phase == .untilClose ? .reset : .cutOff, at: now)
        case .failed, .bytes, .notNow: finish(.reset, at: now)
        }
    }

    private mutating func accept(_ head: Head, at now: Instant) {
        if head.status / 100 == 1, head.status != 101 { return answer.interim.append(head) }
        answer.head = head
        answer.headAt = now
        framing =
            switch head.status {
            case 101, 204, 304: .sized(0)
            case _ where method == "HEAD": .sized(0)
            case _ where head.isChunked: .chunked
            default: head.contentLength.map { .sized($0) } ?? .untilClose
            }
    }
}
