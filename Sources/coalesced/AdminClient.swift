internal import Bytes
internal import Libevent

/// One question to the admin listener of a running proxy.
struct AdminClient {
    struct Reply {
        var status: Int
        var body: String
    }

    enum Failure: Error, CustomStringConvertible {
        case system(SystemError)
        case timedOut
        /// The connection ended before a whole answer, or something else answered.
        case notUnderstood

        var description: String {
            switch self {
            case .system(let error): "\(error)"
            case .timedOut: "no answer within \(AdminClient.patience)"
            case .notUnderstood: "the answer is not one of an admin listener"
            }
        }
    }

    /// How long an answer may take; the admin listener has all it says in memory.
    static let patience: Duration = .seconds(5)

    let address: SocketAddress

    /// Asks and waits on a loop of its own. HTTP/1.0, so that the answer ends where the connection does.
    func send(_ method: String, _ path: String, body: String = "") throws(Failure) -> Reply {
        let request = """
            \(method) \(path) HTTP/1.0\r
            Host: localhost\r
            Content-Type: text/plain\r
            Content-Length: \(body.utf8.count)\r
            \r
            \(body)
            """
        let connection: AdminConnection
        do throws(SystemError) {
            let loop = try EventLoop()
            connection = try AdminConnection(to: address, on: loop, request: request)
            loop.schedule(after: Int64(Self.patience / .nanoseconds(1))) { [weak connection] in connection?.finish(.failure(.timedOut)) }
            loop.run()
            loop.finish()
        } catch {
            throw .system(error)
        }
        switch connection.result {
        case .success(let bytes):
            guard let reply = Reply(String(decoding: bytes, as: UTF8.self)) else { throw .notUnderstood }
            return reply
        case .failure(let failure): throw failure
        }
    }
}

extension AdminClient.Reply {
    /// A status line, fields, an empty line and the rest. `nil`: another kind of server answered, and said so.
    init?(_ text: String) {
        let words = text.utf8.prefix { $0 != UInt8(ascii: "\r") }.split(separator: UInt8(ascii: " "))
        guard words.count >= 2, words[0].starts(with: "HTTP/1.".utf8), let status = Int(Substring(words[1])),
            let head = text.firstRange(of: "\r\n\r\n")
        else { return nil }
        // Earlier ones do not name themselves.
        let servers = text[..<head.upperBound].split(separator: "\r\n").filter { $0.lowercased().hasPrefix("server:") }
        guard servers.allSatisfy({ $0 == "Server: coalesced" }) else { return nil }
        self.init(status: status, body: String(text[head.upperBound...]))
    }
}

extension ByteBuffer {
    /// A copy of what is unconsumed. Not for the proxy's hot path; for what the command line reads.
    var bytes: [UInt8] {
        let bytes = span
        var copy: [UInt8] = []
        copy.reserveCapacity(bytes.count)
        for index in bytes.indices { copy.append(bytes[index]) }
        return copy
    }
}

/// Sends a request and gathers the answer up to the end of the connection; then stops its loop.
private final class AdminConnection: Socket {
    private var unsent: ArraySlice<UInt8>
    private let received = ByteBuffer(capacity: 16 << 10)
    private(set) var result: Result<[UInt8], AdminClient.Failure> = .failure(.notUnderstood)

    init(to address: SocketAddress, on loop: EventLoop, request: String) throws(SystemError) {
        unsent = Array(request.utf8)[...]
        try super.init(connectingTo: address, on: loop)
    }

    func finish(_ result: Result<[UInt8], AdminClient.Failure>) {
        guard !isClosed else { return }
        self.result = result
        close()
        loop.stop()
    }

    override func connected(_ error: SystemError?) {
        if let error { return finish(.failure(.system(error))) }
        startReading()
        writable()
    }

    override func writable() {
        while !unsent.isEmpty {
            switch write(unsent.span) {
            case .wrote(let count): unsent.removeFirst(count)
            case .wouldBlock: return armWrite()
            case .failed(let error): return finish(.failure(.system(error)))
            }
        }
        disarmWrite()
    }

    override func readable() {
        switch read(into: received) {
        case .bytes, .wouldBlock: break
        case .endOfStream:
            finish(.success(received.bytes))
        case .failed(let error): finish(.failure(.system(error)))
        }
    }
}
