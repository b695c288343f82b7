import Synchronization

/// The origin behind every program: one thread, fast. The path selects the response.
///
///     /c/BYTES/…   fresh for an hour, with validators
///     /t/BYTES/N   the same, with three tags that follow from the number N (`TagPurges.tags`)
///     /p/BYTES/…   may not be stored
///     /s/BYTES/…   fresh for an hour, held until `release`; then half of it at once and half after `Origin.pause`
///     /w/BYTES/…   the same, but all of it at once
///     any path, as POST: the body is read, and answered with a few bytes
final class Origin: Sendable {
    static let pause: Int64 = 300_000_000

    struct Storm {
        var isReleased = false
        /// Requests that reached the origin.
        var fetches = 0
        /// The times at which the first and the last byte were written, in nanoseconds.
        var firstByte: Int64 = 0
        var lastByte: Int64 = 0
    }

    private let storm = Mutex(Storm())
    private let isSpinning = Atomic(false)
    private let idleTime = Atomic<Int64>(0)
    private let requests = Atomic<Int>(0)
    let port: Int

    init(port: Int) throws {
        self.port = port
        let listener = try System.listen(port: port)
        System.startThread { [self] in
            var loop = OriginLoop(listener: listener)
            while true { loop.turn(self) }
        }
    }

    /// Whether the origin polls without sleeping: then no server pays for waking it.
    var spins: Bool {
        get { isSpinning.load(ordering: .relaxed) }
        set { isSpinning.store(newValue, ordering: .relaxed) }
    }
    /// Nanoseconds of the origin's CPU time in which it spun without work.
    var idle: Int64 { idleTime.load(ordering: .relaxed) }

    /// The number of requests that have reached the origin.
    var asked: Int { requests.load(ordering: .relaxed) }

    func expectStorm() { storm.withLock { $0 = Storm() } }
    func release() { storm.withLock { $0.isReleased = true } }
    var stormSeen: Storm { storm.withLock { $0 } }

    /// A response that is fresh for an hour.
    static func cacheable(_ size: Int) -> [UInt8] {
        response("max-age=3600", "ETag: \"v1\"\r\nLast-Modified: Sat, 01 Nov 2025 00:00:00 GMT\r\n", size)
    }

    /// A response that is fresh for an hour and has tags.
    static func tagged(_ tags: String, _ size: Int) -> [UInt8] { response("max-age=3600", "xkey: \(tags)\r\n", size) }

    /// A response that may not be stored.
    static func passing(_ size: Int) -> [UInt8] { response("no-store", "", size) }

    private static func response(_ control: String, _ validators: String, _ size: Int) -> [UInt8] {
        let head =
            "HTTP/1.1 200 OK\r\nDate: \(DateText.now)\r\nContent-Type: text/plain\r\nCache-Control: \(control)\r\n"
            + "\(validators)Content-Length: \(size)\r\n\r\n"
        return Array(head.utf8) + [UInt8](repeating: 0x78, count: size)
    }

    fileprivate func wasAsked() { requests.add(1, ordering: .relaxed) }
    fileprivate func wasIdle(_ total: Int64) { idleTime.store(total, ordering: .relaxed) }

    fileprivate func update(_ change: (inout Storm) -> Void) { storm.withLock { change(&$0) } }
}

/// The state of the origin's thread.
private struct OriginLoop {
    private struct Connection {
        var input: [UInt8] = []
        /// Bytes of a request's body still to come.
        var toSkip = 0
        var output: [UInt8] = []
        var written = 0
    }

    private struct Held {
        let descriptor: Int32
        let size: Int
        let comesWhole: Bool
        var secondHalfAt: Int64?
    }

    private let listener: Int32
    private var polled = System.PollSet()
    private var connections: [Int32: Connection] = [:]
    private var held: [Held] = []
    private var buffer = [UInt8](repeating: 0, count: 1 << 18)
    private var ready: [String: [UInt8]] = [:]
    private var spinning = IdleTime()

    init(listener: Int32) {
        self.listener = listener
        polled.add(listener, tag: Int(listener))
    }

    mutating func turn(_ origin: Origin) {
        let descriptors = polled.wait(milliseconds: origin.spins ? 0 : held.isEmpty ? -1 : 1)
        if origin.spins {
            spinning.polled(foundNothing: descriptors.isEmpty)
            origin.wasIdle(spinning.total)
        }
        for descriptor in descriptors {
            if descriptor == listener {
                while let accepted = System.accept(listener) {
                    connections[accepted] = Connection()
                    polled.add(accepted, tag: Int(accepted))
                }
            } else if connections[descriptor]?.output.isEmpty == false {
                flush(descriptor)
            } else {
                receive(descriptor, origin)
            }
        }
        if !held.isEmpty { serveHeld(origin) }
    }

    private mutating func receive(_ descriptor: Int32, _ origin: Origin) {
        guard let count = System.read(descriptor, into: &buffer) else { return }
        guard count > 0 else { return close(descriptor) }
        var start = 0
        if let toSkip = connections[descriptor]?.toSkip, toSkip > 0 {
            let skipped = min(toSkip, count)
            connections[descriptor]?.toSkip = toSkip - skipped
            if skipped == toSkip { send(descriptor, Self.posted) }
            start = skipped
        }
        if start < count { connections[descriptor]?.input += buffer[start..<count] }
        while let input = connections[descriptor]?.input, !input.isEmpty, let end = Self.endOfHead(input) {
            let head = String(decoding: input[..<end], as: UTF8.self)
            origin.wasAsked()
            connections[descriptor]?.input.removeFirst(end)
            answer(descriptor, head, origin)
        }
    }

    private static let posted = Array(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\n\r\ntaken".utf8)

    private static func endOfHead(_ input: [UInt8]) -> Int? {
        guard input.count >= 4 else { return nil }
        for index in 3..<input.count where input[index] == 0x0a && input[index - 2] == 0x0a && input[index - 1] == 0x0d
        {
            return index + 1
        }
        return nil
    }

    private mutating func answer(_ descriptor: Int32, _ head: String, _ origin: Origin) {
        let words = head.prefix { $0 != "\r\n" }.split(separator: " ")
        if words.first == "POST" {
            let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
            let length = line.flatMap { Int($0.dropFirst(15).filter(\.isNumber)) } ?? 0
            let present = connections[descriptor]?.input.count ?? 0
            connections[descriptor]?.input.removeFirst(min(length, present))
            connections[descriptor]?.toSkip = length - min(length, present)
            if length <= present { send(descriptor, Self.posted) }
            return
        }
        let parts = words.count > 1 ? words[1].split(separator: "/") : []
        guard parts.count >= 2, let size = Int(parts[1]) else {
            return send(descriptor, Array("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".utf8))
        }
        if parts[0] == "s" || parts[0] == "w" {
            origin.update { $0.fetches += 1 }
            held.append(Held(descriptor: descriptor, size: size, comesWhole: parts[0] == "w"))
        } else if parts[0] == "t", let number = parts.last.flatMap({ Int($0) }) {
            send(descriptor, Origin.tagged(TagPurges.tags(number), size))
        } else {
            send(descriptor, response(String(parts[0]), size))
        }
    }

    private mutating func response(_ kind: String, _ size: Int) -> [UInt8] {
        let name = "\(kind)/\(size)"
        if let ready = ready[name] { return ready }
        let bytes = kind == "p" ? Origin.passing(size) : Origin.cacheable(size)
        ready[name] = bytes
        return bytes
    }

    private mutating func serveHeld(_ origin: Origin) {
        guard origin.stormSeen.isReleased else { return }
        let now = System.now
        var rest: [Held] = []
        for var held in held {
            let all = response("c", held.size)
            let cut = held.comesWhole ? all.count : all.count - held.size / 2
            if let due = held.secondHalfAt {
                guard now >= due else { rest.append(held); continue }
                send(held.descriptor, Array(all[cut...]))
                origin.update { $0.lastByte = System.now }
            } else {
                send(held.descriptor, Array(all[..<cut]))
                let sent = System.now
                origin.update { if $0.firstByte == 0 { $0.firstByte = sent } }
                guard !held.comesWhole else { origin.update { $0.lastByte = sent }; continue }
                held.secondHalfAt = now + Origin.pause
                rest.append(held)
            }
        }
        held = rest
    }

    private mutating func send(_ descriptor: Int32, _ bytes: [UInt8]) {
        guard connections[descriptor] != nil else { return }
        let written = connections[descriptor]?.output.isEmpty == true ? System.write(descriptor, bytes) : 0
        guard written >= 0 else { return close(descriptor) }
        guard written < bytes.count else { return }
        if connections[descriptor]?.output.isEmpty == true {
            polled.modify(descriptor, tag: Int(descriptor), writing: true)
        }
        connections[descriptor]?.output += bytes[written...]
    }

    private mutating func flush(_ descriptor: Int32) {
        guard var connection = connections[descriptor] else { return }
        let count = System.write(descriptor, connection.output, from: connection.written)
        guard count >= 0 else { return close(descriptor) }
        connection.written += count
        if connection.written == connection.output.count {
            connection.output = []
            connection.written = 0
            polled.modify(descriptor, tag: Int(descriptor), writing: false)
        }
        connections[descriptor] = connection
    }

    private mutating func close(_ descriptor: Int32) {
        held.removeAll { $0.descriptor == descriptor }
        connections[descriptor] = nil
        System.close(descriptor)
    }
}
