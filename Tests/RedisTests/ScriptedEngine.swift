import Bytes
import Libevent

@testable import Redis

/// An engine on the test's own loop, which says what the test wants it to say.
final class ScriptedEngine {
    private var listener: Listener?
    private(set) var conversations: [Conversation] = []
    /// Called for each command that is no part of a set-up.
    let answer: (Conversation, [String]) -> Void
    /// Called for the commands of a set-up.
    var answerSetUp: (Conversation, [String]) -> Void = { conversation, command in
        switch command[0] {
        case "HELLO": conversation.say("%1\r\n+proto\r\n:3\r\n")
        case "FUNCTION": conversation.say(command[1] == "LIST" ? "*0\r\n" : "+name\r\n")
        default: conversation.say("+OK\r\n")
        }
    }
    /// Called for each new connection.
    var onConnection: (Conversation) -> Void = { _ in }

    init(
        on loop: EventLoop, at address: SocketAddress = .ipv4(.loopback, port: 0),
        answer: @escaping (Conversation, [String]) -> Void = { _, _ in }
    ) throws {
        self.answer = answer
        listener = try Listener(address, on: loop) { [unowned self] descriptor, _ in
            let made = Conversation(adopting: descriptor, on: loop, of: self)
            conversations.append(made)
            onConnection(made)
        }
    }

    var port: UInt16 { listener?.localAddress.port ?? 0 }

    var address: RedisAddress { RedisAddress(.tcp(host: "127.0.0.1", port: port)) }

    /// Accepts no more, and ends all connections.
    func close() {
        listener?.close()
        for conversation in conversations { conversation.close() }
    }
}

/// One connection to it.
final class Conversation: Socket {
    private unowned let engine: ScriptedEngine
    private var parser = RESPParser()
    private let input = ByteBuffer(capacity: 1 << 16)
    /// How many bytes each read brought.
    private(set) var reads: [Int] = []
    private(set) var commands: [[String]] = []
    /// Whether the other end closed it.
    private(set) var hasEnded = false

    init(adopting descriptor: consuming Descriptor, on loop: EventLoop, of engine: ScriptedEngine) {
        self.engine = engine
        super.init(adopting: descriptor, on: loop)
        startReading()
    }

    func say(_ text: String) {
        guard !isClosed else { return }
        let bytes = wire(text)
        _ = write(bytes.span)
    }

    override func readable() {
        switch read(into: input, minimum: 1 << 16) {
        case .bytes(let count):
            reads.append(count)
            while !isClosed, let value = try? parser.next(in: input) {
                let words = (value.elements ?? []).map { $0.text.map { String($0) } ?? "" }
                if ["HELLO", "CLIENT", "SELECT", "FUNCTION"].contains(words[0]) {
                    engine.answerSetUp(self, words)
                } else {
                    commands.append(words)
                    engine.answer(self, words)
                }
            }
        case .wouldBlock: break
        case .endOfStream, .failed:
            hasEnded = true
            close()
        }
    }
}
