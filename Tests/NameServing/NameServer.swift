import Glibc
package import Libevent
import Synchronization

/// A name server on 127.0.0.1, over UDP and TCP at the same port (RFC 1035 §4.2, RFC 7766), which answers as a test says.
/// What does not fit into a datagram is truncated.
package final class NameServer: Sendable {
    /// What is asked.
    package struct Question: Sendable, Hashable {
        /// In lower case, without the last dot.
        package let name: String
        package let isIPv6: Bool
        package let isTCP: Bool
        /// How large a datagram may be: 512 bytes, or what EDNS says (RFC 6891 §6.2.3).
        package let room: Int
    }

    /// What is answered.
    package enum Reply: Sendable {
        /// Nothing at all.
        case silence
        /// An RCODE other than 0: 2 failed, 3 no such name, 5 refused.
        case code(UInt8)
        /// Those of the question's family are told; none: the name has no such address. `alias`: the name for which the
        /// addresses are, with a time of its own.
        case addresses([SocketAddress], seconds: UInt32 = 60, alias: (name: String, seconds: UInt32)? = nil)
    }

    package let port: UInt16
    private let datagrams: Int32
    private let listener: Int32
    /// Written to when the thread should end.
    private let bell: (read: Int32, write: Int32)
    private let largestDatagram: Int
    private let answer: Mutex<@Sendable (Question) -> Reply>
    private let asked = Mutex<[Question]>([])
    private let thread = Mutex<LoopThread?>(nil)

    /// - Parameters:
    ///   - largestDatagram: bytes; larger ones are truncated, whatever EDNS says.
    ///   - answer: called on the server's thread.
    package init(largestDatagram: Int = 4096, _ answer: @escaping @Sendable (Question) -> Reply) throws {
        self.largestDatagram = largestDatagram
        self.answer = Mutex(answer)
        var sockets: (datagrams: Int32, listener: Int32, port: UInt16)?
        // The port of the one may be somebody else's for the other.
        for _ in 0..<20 where sockets == nil { sockets = Self.bind() }
        guard let sockets else { throw SystemError(.bind, code: EADDRINUSE) }
        (datagrams, listener, port) = sockets
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { throw SystemError(.open, code: errno) }
        bell = (ends[0], ends[1])
        let server = self
        let thread = try LoopThread(name: "nameserver") { [unowned server] _ in server.serve() }
        self.thread.withLock { $0 = thread }
    }

    /// What was asked so far, one after another.
    package var questions: [Question] { asked.withLock { $0 } }

    /// Answers differently from now on.
    package func change(_ answer: @escaping @Sendable (Question) -> Reply) { self.answer.withLock { $0 = answer } }

    /// Must be called before it is let go.
    package func stop() {
        _ = unsafe write(bell.write, "x", 1)
        thread.withLock { $0.take() }?.join()
        for descriptor in [datagrams, listener, bell.read, bell.write] { close(descriptor) }
    }

    // MARK: Sockets

    private static func bind() -> (datagrams: Int32, listener: Int32, port: UInt16)? {
        let datagrams = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let port = bind(datagrams, to: 0)
        if port != 0, bind(listener, to: port) == port, listen(listener, 16) == 0 { return (datagrams, listener, port) }
        close(datagrams)
        close(listener)
        return nil
    }

    /// - Returns: the port; 0: none.
    private static func bind(_ descriptor: Int32, to port: UInt16) -> UInt16 {
        var memory = sockaddr_in()
        memory.sin_family = sa_family_t(AF_INET)
        memory.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        memory.sin_port = port.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = unsafe withUnsafeMutableBytes(of: &memory) { bytes in
            let pointer = unsafe bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            return unsafe Glibc.bind(descriptor, pointer, length) == 0
                ? unsafe getsockname(descriptor, pointer, &length) : -1
        }
        return result == 0 ? UInt16(bigEndian: memory.sin_port) : 0
    }

    private func serve() {
        /// What came of a message so far, by connection.
        var connections: [Int32: [UInt8]] = [:]
        defer { for descriptor in connections.keys { close(descriptor) } }
        while true {
            var polls = ([bell.read, datagrams, listener] + connections.keys)
                .map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard unsafe poll(&polls, nfds_t(polls.count), -1) > 0 else { continue }
            for poll in polls where poll.revents != 0 {
                switch poll.fd {
                case bell.read: return
                case datagrams: answerDatagram()
                case listener:
                    let connection = accept(listener, nil, nil)
                    if connection >= 0 { connections[connection] = [] }
                default:
                    guard let left = read(poll.fd, after: connections[poll.fd] ?? []) else {
                        close(poll.fd)
                        connections[poll.fd] = nil
                        continue
                    }
                    connections[poll.fd] = left
                }
            }
        }
    }

    private func answerDatagram() {
        var packet = [UInt8](repeating: 0, count: 4096)
        var memory = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        unsafe withUnsafeMutableBytes(of: &memory) { bytes in
            let pointer = unsafe bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            let count = unsafe recvfrom(datagrams, &packet, packet.count, 0, pointer, &length)
            guard count > 0, let reply = reply(to: packet[..<count], isTCP: false) else { return }
            _ = unsafe sendto(datagrams, reply, reply.count, 0, pointer, length)
        }
    }

    /// - Returns: what is there of the next message; `nil`: the connection has ended.
    private func read(_ connection: Int32, after before: [UInt8]) -> [UInt8]? {
        var piece = [UInt8](repeating: 0, count: 4096)
        let count = unsafe Glibc.read(connection, &piece, piece.count)
        guard count > 0 else { return nil }
        var input = before + piece[..<count]
        while input.count >= 2, input.count >= 2 + Int(input[0]) << 8 + Int(input[1]) {
            let length = Int(input[0]) << 8 + Int(input[1])
            if let reply = reply(to: input[2..<2 + length], isTCP: true) {
                let framed = [UInt8(reply.count >> 8), UInt8(reply.count & 255)] + reply
                _ = unsafe send(connection, framed, framed.count, Int32(MSG_NOSIGNAL))
            }
            input.removeFirst(2 + length)
        }
        return input
    }

    // MARK: Messages

    private func reply(to message: ArraySlice<UInt8>, isTCP: Bool) -> [UInt8]? {
        let packet = Array(message)
        guard packet.count > 16 else { return nil }
        var (labels, place): ([String], Int) = ([], 12)
        while place < packet.count, packet[place] != 0 {
            let end = min(packet.count, place + 1 + Int(packet[place]))
            labels.append(String(decoding: packet[place + 1..<end], as: UTF8.self).lowercased())
            place = end
        }
        // Behind the name: its zero byte, type and class; then perhaps EDNS: no name, type 41, and the room.
        let end = place + 5
        guard end <= packet.count else { return nil }
        let hasEDNS = packet[11] == 1 && packet.count >= end + 11 && packet[end + 2] == 41
        let question = Question(
            name: labels.joined(separator: "."), isIPv6: packet[place + 2] == 28, isTCP: isTCP,
            room: hasEDNS ? Int(packet[end + 3]) << 8 + Int(packet[end + 4]) : 512)
        asked.withLock { $0.append(question) }
        var reply = Array(packet[..<end])
        // A response, recursion available, one question.
        reply.replaceSubrange(2..<12, with: [0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0])
        switch answer.withLock({ $0 })(question) {
        case .silence: return nil
        case .code(let code): reply[3] |= code
        case .addresses(let all, let seconds, let alias):
            var records: [[UInt8]] = []
            // A pointer to the question's name.
            var owner: [UInt8] = [0xC0, 12]
            if let alias {
                let name = Self.encoded(alias.name)
                records.append(Self.record(owner, 5, alias.seconds, name))
                owner = name
            }
            for address in all {
                switch address {
                case .ipv4(let address, _) where !question.isIPv6:
                    records.append(Self.record(owner, 1, seconds, Self.bytes(UInt64(address.bits), 4)))
                case .ipv6(let address, _, _) where question.isIPv6:
                    records.append(
                        Self.record(owner, 28, seconds, Self.bytes(address.high, 8) + Self.bytes(address.low, 8)))
                case .ipv4, .ipv6, .unix: break
                }
            }
            let size = reply.count + records.reduce(0) { $0 + $1.count }
            if !isTCP, size > min(largestDatagram, question.room) {
                reply[2] |= 2
            } else {
                reply[6] = UInt8(records.count >> 8)
                reply[7] = UInt8(records.count & 255)
                reply += records.joined()
            }
        }
        return reply
    }

    private static func encoded(_ name: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for label in name.split(separator: ".") {
            bytes.append(UInt8(label.utf8.count))
            bytes += label.utf8
        }
        return bytes + [0]
    }

    private static func record(_ owner: [UInt8], _ type: UInt8, _ seconds: UInt32, _ data: [UInt8]) -> [UInt8] {
        owner + [0, type, 0, 1] + bytes(UInt64(seconds), 4) + [0, UInt8(data.count)] + data
    }

    private static func bytes(_ number: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
    }
}
