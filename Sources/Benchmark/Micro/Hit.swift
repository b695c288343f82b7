import Bytes
import HTTPSemantics
import Storage

/// The steps of a hit, one by one, in coalesced's own code.
struct Hit {
    private let now = Moment(monotonic: 5_000_000_000, wall: 1_000_005)
    private let hasher = KeyedHash(k0: 1, k1: 2)

    private static let large = Array(
        """
        GET /articles/2026/11/21/how-a-cache-works?page=2 HTTP/1.1\r
        Host: www.example.com\r
        User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r
        Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r
        Accept-Language: en-GB,en;q=0.7,de;q=0.3\r
        Accept-Encoding: gzip, deflate, br, zstd\r
        Referer: https://www.example.com/articles/2026/11/21/\r
        Cookie: theme=dark; visits=17\r
        Connection: keep-alive\r
        Upgrade-Insecure-Requests: 1\r
        Sec-Fetch-Dest: document\r
        Sec-Fetch-Mode: navigate\r
        Sec-Fetch-Site: same-origin\r
        \r

        """.utf8)

    private static let small = Array("GET /c/1024/hit HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n".utf8)

    private static let limits = HeadLimits(maxHeadBytes: 32 << 10, maxFieldLines: 100, maxTargetLength: 8 << 10)

    func parse(_ count: Int) { parse(Self.large, count) }
    func parseSmall(_ count: Int) { parse(Self.small, count) }

    private func parse(_ bytes: [UInt8], _ count: Int) {
        var parser = RequestHeadParser(limits: Self.limits)
        var lengths = 0
        for _ in 0..<count {
            parser.reset()
            if case .complete(let length) = try? parser.parse(bytes.span) { lengths += length }
        }
        precondition(lengths == count * bytes.count)
    }

    func key(_ count: Int) {
        var parser = RequestHeadParser(limits: Self.limits)
        _ = try? parser.parse(Self.large.span)
        let (head, bytes) = (parser.head, Self.large.span)
        let fields = parser.view(in: bytes)
        let buffer = ByteBuffer(capacity: 512)
        let policy = KeyPolicy()
        var hashes: UInt64 = 0
        for _ in 0..<count {
            buffer.removeAll()
            buffer.append("http ")
            buffer.appendKeyHost(bytes.extracting(head.authority.range), defaultPort: 80)
            buffer.append(UInt8(ascii: " "))
            policy.append(
                pathAndQuery: bytes.extracting(Int(head.target.path.lower)..<Int(head.target.query.upper)), of: fields,
                to: buffer)
            hashes ^= hasher.hash(buffer.span)
        }
        precondition(count == 0 || count % 2 == 0 || hashes != 0)
    }

    /// - Parameter hasTags: whether each response has three tags.
    func lookUp(_ count: Int, hasTags: Bool = false) {
        let budget = MemoryBudget(limit: 64 << 20)
        var settings = StorageSettings()
        settings.memory = 64 << 20
        // The same keys and tags have the same places in each run.
        let store = ResponseStore(settings: settings, budget: budget, tags: TagTable(hash: hasher))
        let keys = (0..<10_000).map { number in
            let bytes = ByteSlice("http www.example.com /articles/\(number)")
            return CacheKey(hash: hasher.hash(bytes.span), bytes: bytes)
        }
        for (number, key) in keys.enumerated() {
            let names = HeadBlock(lines: ByteSlice(hasTags ? "xkey: a b\(number) c\(number / 10)\r\n" : "A: b\r\n"))
            let tags = store.tags.tags(
                in: names.view, by: .usual, at: "www.example.com", requested: store.tags.generation)
            guard let response = Self.response(budget, now, tags) else { return }
            let outcome = store.store(response, under: key, requestTime: now, unless: { false })
            precondition(outcome == .stored)
        }
        // The first look-up checks the tags.
        for key in keys { precondition(store.resource(key) != nil) }
        var parser = RequestHeadParser(limits: Self.limits)
        _ = try? parser.parse(Self.large.span)
        let fields = parser.view(in: Self.large.span)
        var found = 0
        for number in 0..<count {
            let key = keys[number * 7919 % keys.count]
            let bytes = key.bytes
            if store.response(hash: key.hash, key: bytes.span, matching: fields) != nil { found += 1 }
        }
        precondition(found == count)
    }

    func freshness(_ count: Int) {
        guard let response = Self.response(MemoryBudget(limit: 1 << 20), now) else { return }
        var fresh = 0
        for number in 0..<count {
            let later = Moment(monotonic: now.monotonic + Int64(number), wall: now.wall)
            if case .fresh = response.facts.reuse(for: .none, at: later) { fresh += 1 }
        }
        precondition(fresh == count)
    }

    func writeHead(_ count: Int) {
        guard let response = Self.response(MemoryBudget(limit: 1 << 20), now) else { return }
        let lines = ByteBuffer(capacity: 128)
        lines.append("Via: 1.1 coalesced\r\n")
        CacheStatusWriter(name: ByteSlice("coalesced")).writeHitStart(to: lines)
        let hitText = lines.copied()
        let out = ByteBuffer(capacity: 4096)
        var written = 0
        for number in 0..<count {
            out.removeAll()
            out.appendStatusLine(response.facts.status)
            out.append(response.fieldLines)
            out.appendField("Content-Length", UInt64(1024))
            out.appendField("Age", UInt64(number & 1023))
            out.append(hitText)
            out.append(decimal: UInt64(3600 - (number & 1023)))
            out.append("\r\n\r\n")
            written += out.count
        }
        precondition(count == 0 || written > 0)
    }

    /// The response as the origin of the benchmarks sends it: 1 KiB, fresh for an hour.
    private static func response(_ budget: MemoryBudget, _ now: Moment, _ tags: ResponseTags? = nil)
        -> StoredResponse?
    {
        let body = GrowingBody(budget: budget, expectedLength: 1024)
        guard body.append([UInt8](repeating: 0x78, count: 1024).span) == .accepted else { return nil }
        body.complete()
        let buffer = ByteBuffer(capacity: 256)
        var lines: [FieldLine] = []
        var present: FieldSet = []
        let fields = [
            ("Date", "Sat, 21 Nov 2026 06:47:35 GMT"), ("Content-Type", "text/plain"),
            ("Cache-Control", "max-age=3600"),
            ("ETag", "\"v1\""), ("Last-Modified", "Sat, 01 Nov 2025 00:00:00 GMT"),
        ]
        for (name, value) in fields {
            let field = KnownField.recognise(Array(name.utf8).span)
            let start = buffer.count
            buffer.append(string: "\(name): \(value)\r\n")
            let valueStart = start + name.utf8.count + 2
            lines.append(
                FieldLine(
                    name: ByteRange(start..<start + name.utf8.count),
                    value: ByteRange(valueStart..<valueStart + value.utf8.count), field: field))
            present.insert(field)
        }
        let head = HeadBlock(bytes: buffer.span, lines: lines.span, present: present)
        let facts = ResponseFacts(
            status: .ok, fields: head.view, requestTime: now, responseTime: now, policy: CachingPolicy())
        return StoredResponse(head: head, facts: facts, body: body, tags: tags)
    }
}
