import Bytes
import Libevent
import TLS

/// The owner of a connection. Called on its loop, never from inside a method of the connection except `end`.
protocol RedisConnectionOwner: AnyObject {
    /// Commands may be sent from now on.
    func connectionIsReady()
    /// A push message came. Its first value is its kind.
    func received(push message: [RESPValue])
    /// A command that the owner sent has this reply, which its completion gets next.
    /// - Parameter isSlow: whether the reply took longer than the timeout of the settings, which the deadline of its
    ///   command allowed.
    func commandEnded(_ reply: RedisReply, isSlow: Bool)
    /// The connection has ended. The completions of its commands are called next.
    func connectionEnded(_ why: RedisConnectionEnd)
}

/// One connection to an engine. The connection does not wait for a reply before it sends the next command. Each reply
/// goes to the completion of its command. The commands of one iteration of the loop leave in one write.
///
/// Owned by its `RedisClient`, confined to its loop.
///
/// ```
/// connecting ─connected, in the clear→ settingUp ─every command of the set-up is answered→ ready
///     │ └─connected, with TLS→ securing ─handshake done→ settingUp
///     └─any─error, end of stream, time limit, `end`→ ended
/// ```
final class RedisConnection: Socket {
    enum Phase { case connecting, securing, settingUp, ready, ended }

    private(set) var phase = Phase.connecting
    let settings: RedisSettings
    let library: RedisLibrary?
    /// Whether a `FUNCTION LOAD` is on its way.
    var isLoading = false
    /// The commands of the set-up that have no reply yet.
    var setUpLeft = 0
    private weak var owner: (any RedisConnectionOwner)?

    private let address: RedisAddress
    /// `nil`: in the clear.
    private let tls: ServerTLS?
    /// From the beginning of the handshake on.
    private(set) var stream: TLSStream?
    private let began: Int64
    private var parser: RESPParser
    private var awaited = AwaitedReplies()
    private let input = ByteBuffer(capacity: RedisConnection.smallestRead)
    private var output = ByteBuffer(capacity: 4 << 10)
    private var flushesSoon = false
    /// Calls `timeHasCome` at `timerTime`, or before.
    private var timer: Timer?
    private var timerTime = Int64.max

    /// The least free bytes for each read.
    private static let smallestRead = 32 << 10
    /// An emptied output buffer larger than this is given back.
    private static let mostKept = 1 << 20

    /// Begins to connect.
    /// - Parameters:
    ///   - target: where `address` leads to.
    ///   - library: `nil`: no functions are needed.
    ///   - tls: `nil`: in the clear.
    /// - Throws: if connecting fails at once.
    init(
        to target: SocketAddress, of address: RedisAddress, _ settings: RedisSettings, _ library: RedisLibrary?,
        _ tls: ServerTLS?, on loop: EventLoop, owner: any RedisConnectionOwner
    ) throws(SystemError) {
        self.address = address
        self.tls = tls
        self.settings = settings
        self.library = library
        self.owner = owner
        began = loop.now
        parser = RESPParser(limits: settings.limits)
        try super.init(connectingTo: target, on: loop)
        setTimer()
    }

    // MARK: Life

    override func connected(_ error: SystemError?) {
        guard phase == .connecting else { return }
        if let error { return end(.notConnected(error)) }
        guard let tls else { return prepare() }
        phase = .securing
        do throws(TLSFailure) { stream = try tls.secure(self) } catch { return end(.notSecured(error)) }
        goOnWithHandshake()
    }

    private func goOnWithHandshake() {
        guard let stream else { return }
        do throws(TLSFailure) {
            if try goOn(with: stream) { prepare() }
        } catch {
            end(.notSecured(error))
        }
    }

    private func prepare() {
        phase = .settingUp
        startReading()
        beginSetUp(address)
    }

    func setUpIsComplete() {
        guard phase == .settingUp else { return }
        phase = .ready
        owner?.connectionIsReady()
    }

    /// Ends the connection. The completions of the commands without a reply are called before this returns. A second
    /// call does nothing.
    func end(_ why: RedisConnectionEnd) {
        guard phase != .ended else { return }
        phase = .ended
        timer?.cancel()
        close()
        let left = awaited.takeAll()
        owner?.connectionEnded(why)
        for entry in left { finish(entry, .failed(.lost(why))) }
    }

    override func cannotWatch(_ error: SystemError) { end(.broken(error)) }

    /// Ends the connection, on which bytes cannot be read or written any more.
    private func breakOff(_ error: SystemError) {
        // An engine that refuses the certificate it was shown says so behind the handshake and closes, so that a write
        // may fail before its word is read.
        if phase == .settingUp, stream != nil { while case .bytes = read(into: input) {} }
        guard let failure = stream?.failure, failure.kind != .cut else { return end(.broken(error)) }
        end(.notSecured(failure))
    }

    // MARK: Sending

    /// Sends a command of the owner.
    /// - Parameters:
    ///   - deadline: when the reply is late, in nanoseconds of the loop's clock.
    ///   - completion: called once, never inside this call, unless the command is not sent.
    /// - Returns: the reason why the command is not sent; `nil` if it is.
    func send(
        _ command: RedisCommand, until deadline: Int64, _ completion: @escaping (RedisReply) -> Void
    ) -> RedisReply.Unavailability? {
        guard phase == .ready else { return .notConnected }
        guard awaited.count < settings.mostAwaited, output.count + command.size <= settings.mostUnsent else {
            return .full
        }
        write(command, until: deadline, isOwn: false, completion)
        return nil
    }

    /// Sends a command of the connection itself, which has no deadline of its own.
    func sendOwn(_ command: RedisCommand, until deadline: Int64 = .max, _ completion: @escaping (RedisReply) -> Void) {
        write(command, until: deadline, isOwn: true, completion)
    }

    private func write(
        _ command: RedisCommand, until deadline: Int64, isOwn: Bool, _ completion: @escaping (RedisReply) -> Void
    ) {
        guard phase != .ended else { return }
        command.write(to: output)
        awaited.append(.init(completion: completion, sent: loop.now, deadline: deadline, isOwn: isOwn))
        setTimer(for: min(deadline, loop.now + settings.stall))
        guard !flushesSoon else { return }
        flushesSoon = true
        callAtIterationEnd()
    }

    override func iterationEnds() {
        flushesSoon = false
        if phase == .settingUp || phase == .ready, !isWriteArmed { send() }
    }

    override func writable() {
        if phase == .securing { goOnWithHandshake() } else { send() }
    }

    private func send() {
        switch flush(output) {
        case .done: if output.capacity > Self.mostKept { output = ByteBuffer(capacity: 4 << 10) }
        case .blocked: break
        case .failed(let error): breakOff(error)
        }
    }

    // MARK: Receiving

    override func readable() {
        if phase == .securing { return goOnWithHandshake() }
        switch read(into: input, minimum: Self.smallestRead) {
        case .bytes: receive()
        case .wouldBlock: break
        case .endOfStream: end(.closedByEngine)
        case .failed(let error): breakOff(error)
        }
    }

    private func receive() {
        // A completion may end the connection.
        while phase != .ended {
            let value: RESPValue?
            do throws(RESPSyntaxError) {
                value = try parser.next(in: input)
            } catch {
                return end(.malformed(error))
            }
            switch value {
            case nil: return
            case .push(let message)?: owner?.received(push: message)
            case let value?:
                guard let entry = awaited.popFirst() else { return end(.unasked) }
                finish(entry, RedisReply(value))
            }
        }
    }

    private func finish(_ entry: AwaitedReplies.Entry, _ reply: RedisReply) {
        guard let completion = entry.completion else { return }
        if entry.isOwn { return completion(reply) }
        owner?.commandEnded(reply, isSlow: loop.now - entry.sent > settings.timeout)
        if case .failed(.functionUnknown) = reply, phase == .ready, library != nil {
            loadLibrary()
            return completion(.unavailable(.functionsMissing))
        }
        completion(reply)
    }

    // MARK: Time

    /// The next time at which something is late.
    private var nextTime: Int64? {
        var times: [Int64] = []
        if [.connecting, .securing, .settingUp].contains(phase) { times.append(began + settings.setUpLimit) }
        if let oldest = awaited.oldest { times.append(oldest + settings.stall) }
        if let deadline = awaited.nextDeadline { times.append(deadline) }
        return times.min()
    }

    private func setTimer() { if let time = nextTime { setTimer(for: time) } }

    /// Makes the timer come no later than `time`. It is left alone when a reply comes: it then finds nothing late.
    private func setTimer(for time: Int64) {
        guard time < timerTime else { return }
        timer?.cancel()
        timerTime = time
        timer = loop.schedule(after: max(0, time - loop.now)) { [weak self] in self?.timeHasCome() }
    }

    private func timeHasCome() {
        (timer, timerTime) = (nil, .max)
        guard phase != .ended else { return }
        let now = loop.now
        for entry in awaited.takeLate(at: now) { finish(entry, .late) }
        let hasStalled = awaited.oldest.map { now >= $0 + settings.stall } ?? false
        switch phase {
        case .securing: if now >= began + settings.setUpLimit { return end(.handshakeLate) }
        case .connecting, .settingUp: if now >= began + settings.setUpLimit { return end(.setUpLate) }
        case .ready: if hasStalled { return end(.stalled) }
        // A completion has ended the connection.
        case .ended: return
        }
        setTimer()
    }
}
