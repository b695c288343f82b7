import Bytes
import Libevent

/// A server on the test's own loop. Each connection follows the next script; without one it is closed at once.
final class ScriptedServer {
    enum Step {
        /// A request's head, and as many bytes of content as are awaited.
        case request(content: Int = 0)
        case send(String)
        /// Tells the test (`onEvent`), and waits until that calls `goOn()`.
        case pause
        case close
    }

    private var listener: Listener?
    private var scripts: [[Step]]
    private(set) var connections: [ScriptedConnection] = []
    /// A connection is at a `pause`, or its other end has closed it.
    var onEvent: (ScriptedConnection) -> Void = { _ in }

    /// What came, a request each.
    var requests: [String] { connections.flatMap(\.requests) }

    init(
        on loop: EventLoop, _ scripts: [[Step]], at address: SocketAddress = .ipv4(.loopback, port: 0),
        _ settings: Listener.Settings = Listener.Settings()
    ) throws {
        self.scripts = scripts
        listener = try Listener(address, on: loop, settings: settings) { [unowned self] descriptor, _ in
            let script = self.scripts.isEmpty ? [.close] : self.scripts.removeFirst()
            connections.append(
                ScriptedConnection(adopting: descriptor, on: loop, script) { [unowned self] in onEvent($0) })
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
    private let onEvent: (ScriptedConnection) -> Void

    init(
        adopting descriptor: consuming Descriptor, on loop: EventLoop, _ script: [ScriptedServer.Step],
        onEvent: @escaping (ScriptedConnection) -> Void
    ) {
        self.script = script[...]
        self.onEvent = onEvent
        super.init(adopting: descriptor, on: loop)
        startReading()
        goOn()
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
