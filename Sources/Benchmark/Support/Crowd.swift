/// Many keep-alive connections to one program or several, driven by the calling thread, which all send a request at once.
///
/// While the crowd waits for the responses, it polls every 100 µs, like a `LoadLoop` that takes turns. If the crowd
/// slept in `epoll`, the server's writes would wake it, at the server's expense. If the crowd spun, it would take each
/// response by itself while the server is at the next one, and would cost the server as much.
final class Crowd {
    struct Times {
        /// Nanoseconds of the monotonic clock at which the first and the last byte of the response came; 0 if they did
        /// not come.
        var first: Int64 = 0
        var last: Int64 = 0
    }

    private struct Member {
        var descriptor: Int32
        let port: Int
        var reader = AnswerReader()
        /// The bytes of an incomplete head.
        var pieces: [UInt8] = []
        var times = Times()
    }

    private var members: [Member] = []
    private var parser = AnswerHeadParser()
    private var polled = System.PollSet()
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    private let host: String?

    /// Microseconds between two polls: see `LoadLoop`.
    private static let turn = 100

    /// Opens up to `count` connections, as many as the program accepts.
    convenience init(port: Int, count: Int) { self.init(ports: [port], count: count, host: nil) }

    /// Opens up to `count` connections to the program at each port.
    /// - Parameter host: what the requests name; `nil`: that of the port.
    init(ports: [Int], count: Int, host: String?) {
        self.host = host
        for port in ports {
            for _ in 0..<count {
                guard let descriptor = System.connect(port: port) else { break }
                System.setNonBlocking(descriptor)
                polled.add(descriptor, tag: members.count)
                members.append(Member(descriptor: descriptor, port: port))
            }
        }
    }

    deinit {
        for member in members where member.descriptor >= 0 { System.close(member.descriptor) }
        polled.close()
    }

    var count: Int { members.count }

    /// Sends a request for `path` on every connection.
    func ask(_ path: String) {
        var requests: [Int: [UInt8]] = [:]
        for place in members.indices {
            let port = members[place].port
            let request = requests[port] ?? RequestText(path: path, port: port, host: host).bytes
            requests[port] = request
            members[place].reader = AnswerReader()
            members[place].pieces = []
            members[place].times = Times()
            _ = System.write(members[place].descriptor, request)
        }
    }

    /// Reads until all connections have their responses or `seconds` are over. A connection without a response has
    /// `last` 0.
    func answers(within seconds: Int) -> [Times] {
        let deadline = System.now + Int64(seconds) * 1_000_000_000
        var pending = members.count
        while pending > 0, System.now < deadline {
            let ready = polled.wait(milliseconds: 0)
            System.nap(microseconds: Self.turn)
            for tag in ready where members[Int(tag)].times.last == 0 {
                if read(Int(tag)) { pending -= 1 }
            }
        }
        return members.map(\.times)
    }

    /// Whether the member has no more bytes to wait for.
    private func read(_ place: Int) -> Bool {
        let kept = members[place].pieces.count
        if kept > 0 { buffer.replaceSubrange(..<kept, with: members[place].pieces) }
        guard let count = System.read(members[place].descriptor, into: &buffer, from: kept) else { return false }
        var position = 0
        let outcome =
            count > 0 ? members[place].reader.read(buffer, count: kept + count, &position, &parser) : .malformed
        guard outcome != .malformed else {
            System.close(members[place].descriptor)
            members[place].descriptor = -1
            return true
        }
        let now = System.now
        if members[place].times.first == 0 { members[place].times.first = now }
        members[place].pieces = position < kept + count ? Array(buffer[position..<(kept + count)]) : []
        guard case .answer = outcome else { return false }
        members[place].times.last = now
        return true
    }
}
