import Bytes
import Glibc
import SharedTier

/// A blocking connection to an engine, in RESP3.
final class EngineConnection {
    private let socket: Int32
    private let input = ByteBuffer(capacity: 1 << 16)
    private let output = ByteBuffer(capacity: 1 << 16)
    /// The names of the keys that the engine has said to have changed, in order; `*`: all.
    private(set) var changes: [String] = []

    init(_ path: String, tracking: Bool = false) throws(Engine.Failure) {
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let connected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe connect(
                socket, UnsafeRawPointer(pointer).assumingMemoryBound(to: sockaddr.self),
                socklen_t(MemoryLayout<sockaddr_un>.size))
        }
        guard connected == 0 else { throw Engine.Failure(description: "no connection to \(path)") }
        _ = try send("HELLO", "3")
        if tracking { _ = try send("CLIENT", "TRACKING", "ON", "NOLOOP") }
    }

    deinit { close(socket) }

    @discardableResult func send(_ words: String...) throws(Engine.Failure) -> TierValue {
        queue(words.map { ByteSlice($0) })
        return try flush()[0]
    }

    @discardableResult func send(_ command: TierCommand) throws(Engine.Failure) -> TierValue {
        queue(command)
        return try flush()[0]
    }

    private var (queued, awaited) = (0, 0)

    /// Adds a command to those of the next `flush`.
    func queue(_ command: TierCommand) {
        queue(
            command.arguments.map { argument in
                switch argument {
                case .word(let word): ByteSlice(word.text)
                case .bytes(let bytes), .key(let bytes): bytes
                case .number(let number): ByteSlice("\(number)")
                }
            })
    }

    func queue(_ words: [ByteSlice]) {
        output.append("*")
        output.append(decimal: words.count)
        output.append("\r\n")
        for word in words {
            output.append("$")
            output.append(decimal: word.count)
            output.append("\r\n")
            output.append(word)
            output.append("\r\n")
        }
        queued += 1
    }

    /// Sends what was queued, and waits for all replies.
    func flush() throws(Engine.Failure) -> [TierValue] {
        try transmit()
        return try receive()
    }

    /// Sends what was queued; `receive` then waits for the replies.
    func transmit() throws(Engine.Failure) {
        let (socket, output) = (socket, output)
        while !output.isEmpty {
            let sent = unsafe output.span.withUnsafeBytes { unsafe Glibc.send(socket, $0.baseAddress, $0.count, 0) }
            guard sent > 0 else { throw Engine.Failure(description: "the engine has gone") }
            output.consume(sent)
        }
        (awaited, queued) = (awaited + queued, 0)
    }

    func receive() throws(Engine.Failure) -> [TierValue] {
        var replies: [TierValue] = []
        while replies.count < awaited { if let reply = try value() { replies.append(reply) } }
        awaited = 0
        return replies
    }

    /// Waits until the engine has said that `key` has changed, at most for some seconds.
    func hears(of key: String, within seconds: Int = 5) throws(Engine.Failure) -> Bool {
        for _ in 0..<seconds * 20 {
            if changes.contains(key) { changes.removeAll(); return true }
            usleep(20_000)
            // The engine sends what it has to say before the reply.
            try send("PING")
        }
        return false
    }

    func forgetChanges() { changes.removeAll() }

    /// The next value; `nil`: it was a push message.
    private func value() throws(Engine.Failure) -> TierValue? {
        let line = try self.line()
        let rest = String(line[1..<line.count])
        switch line.span[0] {
        case UInt8(ascii: "+"): return .text(line[1..<line.count])
        case UInt8(ascii: "-"): return .error(line[1..<line.count])
        case UInt8(ascii: ":"): return .integer(Int64(rest) ?? 0)
        case UInt8(ascii: "_"): return TierValue.none
        case UInt8(ascii: "$"), UInt8(ascii: "="):
            let bytes = try bytes(Int(rest) ?? 0)
            return .text(bytes)
        case UInt8(ascii: "*"): return .list(try values(Int(rest) ?? 0))
        case UInt8(ascii: "%"): return .list(try values(2 * (Int(rest) ?? 0)))
        case UInt8(ascii: ">"):
            let message = try values(Int(rest) ?? 0)
            guard message.count == 2 else { return nil }
            guard case .list(let keys) = message[1] else { changes.append("*"); return nil }
            for case .text(let key) in keys { changes.append(String(key)) }
            return nil
        default: throw Engine.Failure(description: "an odd reply: \(String(line))")
        }
    }

    private func values(_ count: Int) throws(Engine.Failure) -> [TierValue] {
        var values: [TierValue] = []
        while values.count < count { if let value = try value() { values.append(value) } }
        return values
    }

    private func line() throws(Engine.Failure) -> ByteSlice {
        let input = input
        while true {
            if let end = input.span.firstIndex(of: 0x0a) {
                let line = ByteSlice(copying: input.span.extracting(0..<end - 1))
                input.consume(end + 1)
                return line
            }
            try fill()
        }
    }

    private func bytes(_ count: Int) throws(Engine.Failure) -> ByteSlice {
        let input = input
        while input.count < count + 2 { try fill() }
        let bytes = ByteSlice(copying: input.span.extracting(0..<count))
        input.consume(count + 2)
        return bytes
    }

    private func fill() throws(Engine.Failure) {
        let socket = socket
        let count = unsafe input.withFreeSpace(minimum: 1 << 16) { space in
            max(0, unsafe recv(socket, space.baseAddress, space.count, 0))
        }
        guard count > 0 else { throw Engine.Failure(description: "the engine has gone") }
    }
}
