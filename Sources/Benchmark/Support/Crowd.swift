/// Many keep-alive connections to one program, driven by the calling thread.
final class Crowd {
    struct Times {
        /// Nanoseconds of the monotonic clock at which the first and the last byte of the answer came; 0 when they did not.
        var first: Int64 = 0
        var last: Int64 = 0
    }

    private struct Member {
        var descriptor: Int32
        var head: [UInt8] = []
        /// Bytes of the body still to come, once the head is read.
        var missing: Int?
        var times = Times()
    }

    private var members: [Member] = []
    private var index: [Int32: Int] = [:]
    private var polled = System.PollSet()
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    private let port: Int

    /// As many connections as the program takes of `count`.
    init(port: Int, count: Int) {
        self.port = port
        for _ in 0..<count {
            guard let descriptor = System.connect(port: port) else { break }
            System.setNonBlocking(descriptor)
            polled.add(descriptor)
            index[descriptor] = members.count
            members.append(Member(descriptor: descriptor))
        }
    }

    deinit {
        for member in members { System.close(member.descriptor) }
        polled.close()
    }

    var count: Int { members.count }

    /// All of them ask for `path`.
    func ask(_ path: String) {
        let request = Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n".utf8)
        for place in members.indices {
            members[place].head = []
            members[place].missing = nil
            members[place].times = Times()
            _ = System.write(members[place].descriptor, request)
        }
    }

    /// Reads until all have their answers or `seconds` are over. Who has none has `last` 0.
    func answers(within seconds: Int) -> [Times] {
        let deadline = System.now + Int64(seconds) * 1_000_000_000
        var pending = members.count
        while pending > 0, System.now < deadline {
            for descriptor in polled.wait(milliseconds: 100) {
                guard let place = index[descriptor], members[place].times.last == 0 else { continue }
                if read(place) { pending -= 1 }
            }
        }
        return members.map(\.times)
    }

    /// Whether this member has nothing more to wait for.
    private func read(_ place: Int) -> Bool {
        guard let count = System.read(members[place].descriptor, into: &buffer) else { return false }
        guard count > 0 else {
            System.close(members[place].descriptor)
            members[place].descriptor = -1
            return true
        }
        let now = System.now
        if members[place].times.first == 0 { members[place].times.first = now }
        if let missing = members[place].missing {
            members[place].missing = missing - count
        } else {
            members[place].head += buffer[..<count]
            members[place].missing = Self.missing(members[place].head)
        }
        guard let missing = members[place].missing, missing <= 0 else { return false }
        members[place].times.last = now
        return true
    }

    /// Bytes of the body that are not there yet, or nil before the end of the head.
    private static func missing(_ bytes: [UInt8]) -> Int? {
        let text = String(decoding: bytes, as: UTF8.self)
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
        guard let end = lines.firstIndex(of: "") , end < lines.count - 1 || text.hasSuffix("\r\n\r\n") else { return nil }
        let line = lines[..<end].first { $0.lowercased().hasPrefix("content-length:") }
        let length = line.flatMap { Int($0.dropFirst(15).filter(\.isNumber)) } ?? 0
        let head = lines[..<end].reduce(2) { $0 + $1.utf8.count + 2 }
        return head + length - bytes.count
    }
}

/// One connection that asks, waits for the answer and asks again.
final class Caller {
    private let descriptor: Int32
    private let port: Int
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    init?(port: Int) {
        guard let descriptor = System.connect(port: port) else { return nil }
        System.setReceiveTimeout(descriptor, seconds: 10)
        self.descriptor = descriptor
        self.port = port
    }

    deinit { System.close(descriptor) }

    func ask(_ path: String) {
        _ = System.write(descriptor, Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n".utf8))
    }

    /// The status of the next answer, which is read whole; nil when there is none. `size` is known beforehand.
    func answer(size: Int) -> Int? {
        var head: [UInt8] = []
        var body = -1
        while body < size {
            guard let count = System.read(descriptor, into: &buffer), count > 0 else { return nil }
            if body < 0 {
                head += buffer[..<count]
                body = Self.bodyStart(head).map { head.count - $0 } ?? -1
            } else {
                body += count
            }
        }
        return head.count > 12 ? Int(String(decoding: head[9..<12], as: UTF8.self)) : nil
    }

    private static func bodyStart(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        for index in 3..<bytes.count where bytes[index] == 0x0a && bytes[index - 2] == 0x0a { return index + 1 }
        return nil
    }

    /// Asks for all of `paths` over several connections, so that they are stored. False when an answer was not 200.
    @discardableResult
    static func fetch(_ paths: [String], size: Int, port: Int) -> Bool {
        let callers = (0..<min(16, paths.count)).compactMap { _ in Caller(port: port) }
        guard !callers.isEmpty else { return false }
        var next = 0
        while next < paths.count {
            let batch = paths[next..<min(next + callers.count, paths.count)]
            for (caller, path) in zip(callers, batch) { caller.ask(path) }
            for (caller, _) in zip(callers, batch) where caller.answer(size: size) != 200 { return false }
            next += batch.count
        }
        return true
    }
}
