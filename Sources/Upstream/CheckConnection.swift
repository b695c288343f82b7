import Bytes
import Libevent
import TLS

/// The connection of one check. Owned by its `Check`, confined to its loop.
///
/// ```
/// connecting ─connected→ asking ─the response is judged, the connection is closed→ ended
///     │└─connected, with TLS→ securing ─handshake done→ asking
///     └─error→ ended             └─error→ ended                any ─close→ ended (told to nobody)
/// ```
final class CheckConnection: Socket {
    enum End {
        case notConnected(SystemError)
        case notSecured(TLSFailure)
        case judged(CheckEnd)
    }

    private let request: ByteSlice
    /// Bytes of the request that are still to be sent.
    private var left: Int
    private var judge: CheckJudge
    private let input = ByteBuffer(capacity: 4 << 10)
    /// `nil` in the clear.
    private let tls: ServerTLS?
    /// The handshake under way.
    private var handshake: TLSStream?
    private let onEnd: (End) -> Void

    /// - Parameters:
    ///   - tls: with no session of another connection: a session that is resumed shows no certificate.
    ///   - onEnd: called at most once, and never from inside this call.
    init(
        to address: SocketAddress, _ request: ByteSlice, _ judge: consuming CheckJudge, _ tls: ServerTLS?,
        on loop: EventLoop, onEnd: @escaping (End) -> Void
    ) throws(SystemError) {
        self.request = request
        left = request.count
        self.judge = judge
        self.tls = tls
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
        guard let tls else { return ask() }
        do throws(TLSFailure) {
            handshake = try tls.secure(self)
        } catch {
            return end(.notSecured(error))
        }
        goOn()
    }

    /// Goes on with the handshake.
    private func goOn() {
        guard let handshake else { return }
        do throws(TLSFailure) {
            guard try goOn(with: handshake) else { return }
        } catch {
            return end(.notSecured(error))
        }
        self.handshake = nil
        ask()
    }

    private func ask() {
        startReading()
        send()
    }

    override func writable() {
        if handshake != nil { goOn() } else { send() }
    }

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
        if handshake != nil { return goOn() }
        switch read(into: input) {
        case .bytes: if let judgement = judge.read(input) { end(.judged(judgement)) }
        case .wouldBlock: break
        case .endOfStream: end(.judged(judge.endOfStream()))
        case .failed: end(.judged(.failed(.closed)))
        }
    }

    override func cannotWatch(_ error: SystemError) { end(.judged(.undecided)) }
}
