import Admin
import Bytes
import Libevent
import TLS

/// Sends requests to the admin listener of a running proxy.
struct AdminClient {
    struct Reply {
        var status: Int
        var body: String
    }

    enum Failure: Error, CustomStringConvertible {
        case system(SystemError)
        /// One of the two refused the other in TLS.
        case notSecured(TLSFailure)
        /// No program accepted the connection in time.
        case notConnected
        /// The connection is established, but no complete response came within this time.
        case timedOut(Duration)
        /// The connection ended before a complete response, or another program answered.
        case notUnderstood

        var description: String {
            switch self {
            case .system(let error): "\(error)"
            case .notSecured(let failure) where failure.kind == .certificate:
                "its certificate is none that tls.certificates names in the file, nor a good one of the system's authorities (\(failure))"
            case .notSecured(let failure): "no TLS (\(failure))"
            case .notConnected: "no connection within \(AdminClient.patience)"
            case .timedOut(let patience): "no answer within \(patience)"
            case .notUnderstood: "the reply is not from a coalesced admin listener"
            }
        }
    }

    /// How long a response may take. The admin listener has the content of its responses in memory.
    static let patience: Duration = .seconds(5)
    /// How long the response to a purge may take. It comes when all stored responses have been visited.
    static let purgePatience: Duration = .seconds(300)

    let address: AdminAddress
    /// The certificates that the proxy's file names; with TLS alone.
    var certificates: [NamedFile] = []
    /// The token for `admin.token-file`; `nil` if none is known.
    var token: AdminToken?
    /// The operator's next step if the listener does not accept this token.
    var remedy: String

    /// Sends a request and waits for the response on a loop of its own. Uses HTTP/1.0, so that the end of the
    /// connection ends the response.
    /// - Parameter patience: how long the response may take.
    func send(_ method: String, _ path: String, body: String = "", patience: Duration = Self.patience) throws(Failure)
        -> Reply
    {
        let request = """
            \(method) \(path) HTTP/1.0\r
            Host: localhost\r
            \(token.map { "Authorization: Bearer \($0.text)\r\n" } ?? "")\
            Content-Type: text/plain\r
            Content-Length: \(body.utf8.count)\r
            \r
            \(body)
            """
        guard address.isSecure else { return try send(request, securedBy: nil, patience) }
        var refusal = Failure.notSecured(TLSFailure(.certificate, "there is nothing to compare it with"))
        for trust in AdminTrust.all(certificates, at: address.address) {
            do throws(Failure) {
                return try send(request, securedBy: trust, patience)
            } catch {
                guard case .notSecured(let failure) = error, failure.kind == .certificate else { throw error }
                refusal = error
            }
        }
        throw refusal
    }

    /// - Parameter trust: `nil`: in the clear.
    private func send(
        _ request: String, securedBy trust: AdminTrust?, _ patience: Duration
    ) throws(Failure) -> Reply {
        let connection: AdminRequest
        do throws(SystemError) {
            let loop = try EventLoop()
            connection = try AdminRequest(to: address.address, securedBy: trust, on: loop, request: request)
            loop.schedule(after: Int64(Self.patience / .nanoseconds(1))) { [weak connection] in
                if connection?.isConnected == false { connection?.finish(.failure(.notConnected)) }
            }
            loop.schedule(after: Int64(patience / .nanoseconds(1))) { [weak connection] in
                connection?.finish(.failure(.timedOut(patience)))
            }
            loop.run()
            loop.finish()
        } catch {
            throw .system(error)
        }
        switch connection.result {
        case .success(let text):
            guard let reply = Reply(text) else { throw .notUnderstood }
            return reply
        case .failure(let failure): throw failure
        }
    }
}

extension AdminClient.Reply {
    /// Reads a status line, fields, an empty line and content. `nil` if another program answered, such as the origin
    /// behind the public listener.
    init?(_ text: String) {
        let words = text.utf8.prefix { $0 != UInt8(ascii: "\r") }.split(separator: UInt8(ascii: " "))
        guard words.count >= 2, words[0].starts(with: "HTTP/1.".utf8), let status = Int(Substring(words[1])),
            let head = text.firstRange(of: "\r\n\r\n")
        else { return nil }
        guard text[..<head.upperBound].split(separator: "\r\n").contains("Server: coalesced") else { return nil }
        self.init(status: status, body: String(text[head.upperBound...]))
    }
}

/// Sends a request and gathers the response up to the end of the connection. Then it stops its loop.
private final class AdminRequest: Socket {
    private let unsent = ByteBuffer(capacity: 1024)
    private let received = ByteBuffer(capacity: 16 << 10)
    private(set) var result: Result<String, AdminClient.Failure> = .failure(.notUnderstood)
    private(set) var isConnected = false
    /// `nil`: in the clear.
    private let trust: AdminTrust?
    /// The handshake while it is under way.
    private var handshake: TLSStream?

    init(
        to address: SocketAddress, securedBy trust: AdminTrust?, on loop: EventLoop, request: String
    ) throws(SystemError) {
        self.trust = trust
        unsent.append(string: request)
        try super.init(connectingTo: address, on: loop)
    }

    func finish(_ result: Result<String, AdminClient.Failure>) {
        guard !isClosed else { return }
        self.result = result
        close()
        loop.stop()
    }

    override func connected(_ error: SystemError?) {
        if let error { return finish(.failure(.system(error))) }
        guard let trust else { return send() }
        guard let stream = trust.secure(self) else { return finish(.failure(.notSecured(.shortOfMemory))) }
        handshake = stream
        shake(stream)
    }

    private func shake(_ stream: TLSStream) {
        do throws(TLSFailure) {
            guard try goOn(with: stream) else { return }
            handshake = nil
            send()
        } catch {
            finish(.failure(.notSecured(error)))
        }
    }

    private func send() {
        isConnected = true
        startReading()
        writable()
    }

    override func writable() {
        if let handshake { return shake(handshake) }
        if case .failed(let error) = flush(unsent) { finish(.failure(.system(error))) }
    }

    override func readable() {
        if let handshake { return shake(handshake) }
        let received = received
        switch read(into: received) {
        case .bytes, .wouldBlock: break
        case .endOfStream: finish(.success(String(received.span)))
        case .failed(let error): finish(.failure(.system(error)))
        }
    }
}
