import Bytes
import Libevent

/// The connection of one check. Owned by its `Check`, confined to its loop.
///
/// ```
/// connecting ─connected→ asking ─the response is judged, the connection is closed→ ended
///     └─error→ ended                          any ─close→ ended (told to nobody)
/// ```
final class CheckConnection: Socket {
    enum End {
        case notConnected(SystemError)
        case judged(CheckEnd)
    }

    private let request: ByteSlice
    /// Bytes of the request that are still to be sent.
    private var left: Int
    private var judge: CheckJudge
    private let input = ByteBuffer(capacity: 4 << 10)
    private let onEnd: (End) -> Void

    /// - Parameter onEnd: called at most once, and never from inside this call.
    init(
        to address: SocketAddress, _ request: ByteSlice, _ judge: consuming CheckJudge, on loop: EventLoop,
        onEnd: @escaping (End) -> Void
    ) throws(SystemError) {
        self.request = request
        left = request.count
        self.judge = judge
        self.onEnd = onEnd
        try super.init(connectingTo: address, on: loop)
    }

    private func end(_ end: End) {
        guard !isClosed else { return }
        close()
        onEnd(end)
    }

    override func connected(_ error: SystemError?) {
        if let error { return end(.notConnected(error)) }
        startReading()
        send()
    }

    override func writable() { send() }

    private func send() {
        let request = request
        switch write(request.span.extracting(last: left)) {
        case .wrote(let count): left -= count
        case .wouldBlock: break
        // A server may respond to the bytes that it got: a response is read all the same.
        case .failed: left = 0
        }
        if left > 0 { armWrite() } else { disarmWrite() }
    }

    override func readable() {
        switch read(into: input) {
        case .bytes: if let judgement = judge.read(input) { end(.judged(judgement)) }
        case .wouldBlock: break
        case .endOfStream: end(.judged(judge.endOfStream()))
        case .failed: end(.judged(.failed(.closed)))
        }
    }

    override func cannotWatch(_ error: SystemError) { end(.judged(.undecided)) }
}
