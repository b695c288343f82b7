import Bytes
import Libevent

@testable import TLS

/// A server on the test's own loop. Each connection follows the next script; without one it is closed at once.
final class ScriptedServer {
    enum Step {
        /// A request's head, and as many bytes of content as are awaited.
        case request(content: Int = 0)
        case send(String)
        /// Tells the test (`onEvent`), and waits until that calls `goOn()`.
        case pause
        case close
        /// Closes without a close_notify.
        case cut
    }

    private var listener: Listener?
    private var scripts: [[Step]]
    private(set) var connections: [ScriptedConnection] = []
    /// The TLS of the connections; `nil`: they are in the clear.
    private let tls: TLSServer?
    /// Whether clients are to show certificates.
    var clientCertificates = ClientCertificates.off
    /// The TLS of a new connection.
    var onStream: (TLSStream) -> Void = { _ in }
    /// A connection is at a `pause`, or its other end has closed it.
    var onEvent: (ScriptedConnection) -> Void = { _ in }

    /// What came, a request each.
    var requests: [String] { connections.flatMap(\.requests) }

    init(
        on loop: EventLoop, _ scripts: [[Step]], at address: SocketAddress = .ipv4(.loopback, port: 0),
        _ settings: Listener.Settings = Listener.Settings(), tls: TLSServer? = nil
    ) throws {
        self.tls = tls
        self.scripts = scripts
        listener = try Listener(address, on: loop, settings: settings) { [unowned self] descriptor, _ in
            let script = self.scripts.isEmpty ? [.close] : self.scripts.removeFirst()
            let stream = self.tls?.accept(onDescriptor: descriptor.rawValue, clientCertificates)
            if let stream { onStream(stream) }
            connections.append(
                ScriptedConnection(adopting: descriptor, through: stream, on: loop, script) {
                    [weak self] in self?.onEvent($0)
                })
        }
    }

    var port: UInt16 { listener?.localAddress.port ?? 0 }

    /// Accepts no more.
    func close() { listener?.close() }
}

final class ScriptedConnection: Socket {
    private var script: ArraySlice<ScriptedServer.Step>
    private let input = ByteBuffer(capacity: 1 << 16)
    private(set) var requests: [String] = []
    /// Whether the other end closed it.
    private(set) var hasEnded = false
    let stream: TLSStream?
    private let onEvent: (ScriptedConnection) -> Void

    init(
        adopting descriptor: consuming Descriptor, through stream: TLSStream?, on loop: EventLoop,
        _ script: [ScriptedServer.Step], onEvent: @escaping (ScriptedConnection) -> Void
    ) {
        self.script = script[...]
        self.onEvent = onEvent
        self.stream = stream
        super.init(adopting: descriptor, through: stream, on: loop)
        startReading()
        if stream == nil { goOn() }
    }

    /// - Returns: whether it is done.
    private func shakeHands(_ stream: TLSStream) -> Bool {
        switch stream.advance() {
        case .done: return true
        case .needsBytes, .needsRoom: return false
        case .failed:
            hasEnded = true
            close()
            onEvent(self)
            return false
        }
    }

    /// After a `pause`.
    func goOn() {
        while !isClosed, let step = script.first {
            switch step {
            case .request(let content):
                guard let request = takeRequest(content) else { return }
                requests.append(request)
            case .send(let text):
                let bytes = ByteSlice(text)
                _ = write(bytes.span)
            case .pause:
                script.removeFirst()
                return onEvent(self)
            case .close:
                close()
            case .cut:
                _ = handOver()
            }
            script.removeFirst()
        }
    }

    private func takeRequest(_ content: Int) -> String? {
        let text = String(input.copied())
        guard let head = text.firstRange(of: "\r\n\r\n"), text[head.upperBound...].utf8.count >= content else {
            return nil
        }
        input.removeAll()
        return text
    }

    override func readable() {
        if let stream, !stream.isOpen {
            if shakeHands(stream) { goOn() }
            // What came with the end of the handshake.
            guard stream.isOpen, !isClosed, !isSilent else { return }
        }
        switch read(into: input, minimum: 1 << 12) {
        case .bytes:
            goOn()
        case .wouldBlock:
            break
        case .endOfStream, .failed:
            hasEnded = true
            close()
            onEvent(self)
        }
    }
}
