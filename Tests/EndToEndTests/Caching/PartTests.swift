import Testing

/// Parts of a representation through the running program (RFC 9111 §3.3, §3.4): what the tables of cases cannot say.
@Suite(.scenario) struct PartTests {
    /// An origin that serves a pattern as servers of files do: whole, by one range, under `If-Range` and
    /// `If-None-Match`.
    private static func file(_ length: Int, tag: String = "\"v1\"", seed: Int = 0, before: Step...)
        -> ScriptedOrigin.Handler
    {
        { request in
            let fields = ["Cache-Control: max-age=60", "ETag: \(tag)", "Accept-Ranges: bytes"]
            if request["if-none-match"] == tag { return before + [.head(304, fields)] }
            let mayBePart = request["if-range"].map { $0 == tag } ?? true
            guard mayBePart, let range = request["range"].flatMap({ self.range($0, of: length) }) else {
                return before + [.head(200, fields + ["Content-Length: \(length)"]), .pattern(0..<length, seed: seed)]
            }
            return before + [
                .head(
                    206,
                    fields + [
                        "Content-Length: \(range.count)",
                        "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)",
                    ]),
                .pattern(range, seed: seed),
            ]
        }
    }

    private static func range(_ field: String, of length: Int) -> Range<Int>? {
        let ends = field.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        guard let first = Int(ends[0]) else { return Int(ends[1]).map { max(0, length - $0)..<length } }
        return first..<min(length, (Int(ends[1]) ?? length - 1) + 1)
    }

    private func expect(
        _ answer: Answer, is range: Range<Int>, of length: Int, seed: Int = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let pattern = Pattern(seed: seed)
        let (kept, expected) = (answer.body.kept, pattern.bytes(range))
        #expect(answer.status == 206 && answer.isClean, sourceLocation: sourceLocation)
        #expect(answer.body.length == range.count && expected.starts(with: kept), sourceLocation: sourceLocation)
        #expect(kept.count >= min(range.count, Body.keepsAtMost), sourceLocation: sourceLocation)
        #expect(
            answer["content-range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)",
            sourceLocation: sourceLocation)
    }

    // MARK: - Too large to be kept whole

    @Test func `parts of a response that is too large to store are stored`() throws {
        try scenario(.maxObjectSize(100_000)) { origin, proxy in
            origin.on("/x", Self.file(1_000_000))
            expect(try proxy.get("/x", "Range: bytes=500000-509999"), is: 500_000..<510_000, of: 1_000_000)
            // Once for the whole, which was too large, and once for the part.
            #expect(origin.requests("/x").map { $0["range"] } == [nil, "bytes=500000-509999"])
            expect(try proxy.get("/x", "Range: bytes=501000-502999"), is: 501_000..<503_000, of: 1_000_000)
            #expect(origin.count("/x") == 2)
            expect(try proxy.get("/x", "Range: bytes=505000-514999"), is: 505_000..<515_000, of: 1_000_000)
            #expect(origin.requests("/x").last?["range"] == "bytes=510000-514999")
            #expect(origin.requests("/x").last?["if-range"] == "\"v1\"")
        }
    }

    @Test func `a chunked part longer than its Content-Range has no clean end`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in
                let fields = [
                    "Cache-Control: max-age=60", "ETag: \"v1\"", "Content-Range: bytes 0-3/9",
                    "Transfer-Encoding: chunked",
                ]
                return [.head(206, fields), .chunk("ab"), .gate(gate), .chunk("cde"), .lastChunk()]
            }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/x", ["Range: bytes=0-3"]))
            try client.progress { $0.body.length == 2 }
            gate.open()
            #expect(try !client.answer().isClean)
            try proxy.get("/x", "Range: bytes=0-3")
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `fifty ranges of a large response cause two fetches`() throws {
        try scenario(.maxObjectSize(100_000)) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request["range"] == nil
                    ? [.gate(gate), .head(200, "Cache-Control: max-age=60", "ETag: \"v1\"", "Content-Length: 1000000")]
                    : [.wait(.milliseconds(300))] + Self.file(1_000_000)(request)
            }
            let crowd = proxy.crowd(50, get: "/x", "Range: bytes=1000-1999")
            try proxy.joined(50)
            gate.open()
            for answer in crowd.finished() { expect(answer, is: 1_000..<2_000, of: 1_000_000) }
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `parts beyond the largest object make room for the newest`() throws {
        try scenario(.maxObjectSize(100_000), .rangeMisses("part")) { origin, proxy in
            origin.on("/x", Self.file(1_000_000))
            for start in stride(from: 0, to: 400_000, by: 20_000) {
                let range = start..<start + 20_000
                expect(
                    try proxy.get("/x", "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)"), is: range,
                    of: 1_000_000)
            }
            let before = origin.count("/x")
            expect(try proxy.get("/x", "Range: bytes=380000-399999"), is: 380_000..<400_000, of: 1_000_000)
            #expect(origin.count("/x") == before)
            let stored = try #require(try proxy.status()["memory"]?["stored"]?.number)
            #expect(stored < 110_000)
        }
    }

    @Test func `a full response too large to store is sent from the stored parts and one fetch`() throws {
        try scenario(.maxObjectSize(100_000), .rangeMisses("part")) { origin, proxy in
            origin.on("/x", Self.file(1_000_000))
            try proxy.get("/x", "Range: bytes=0-49999")
            let whole = try proxy.get("/x")
            #expect(whole.status == 200 && whole.isWhole(1_000_000))
            #expect(origin.requests("/x").last?["range"] == "bytes=50000-")
        }
    }

    @Test func `parts are not served stale after the origin responded 404`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .answer(
                            206, "Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"",
                            "Content-Range: bytes 0-99/1000",
                            pattern: 100)
                    ]
                    : [.answer(404)]
            }
            #expect(try proxy.get("/x", "Range: bytes=0-99").status == 206)
            let more = try proxy.get("/x", "Range: bytes=0-299")
            #expect(more.status == 404)
            origin.goDown()
            let again = try proxy.get("/x", "Range: bytes=0-99")
            #expect(again.status == 502, "\(again.cacheStatus)")
        }
    }

    // MARK: - Without a strong tag

    /// An origin of ranges of a pattern, which knows no strong tag.
    private static func untagged(_ length: Int, _ fields: String...) -> ScriptedOrigin.Handler {
        { request in
            guard let range = request["range"].flatMap({ self.range($0, of: length) }) else {
                return [.head(200, fields + ["Content-Length: \(length)"]), .pattern(0..<length)]
            }
            return [
                .head(
                    206,
                    fields + [
                        "Content-Length: \(range.count)",
                        "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)",
                    ]), .pattern(range),
            ]
        }
    }

    @Test(arguments: ["X: no tag", "ETag: W/\"v1\"", "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT"])
    func `a part without a strong tag serves ranges inside it, and is never combined`(_ field: String) throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x", Self.untagged(10_000, "Cache-Control: max-age=60", field))
            func get(_ first: Int, _ last: Int, is status: String) throws {
                let answer = try proxy.get("/x", "Range: bytes=\(first)-\(last)")
                expect(answer, is: first..<last + 1, of: 10_000)
                #expect(answer.cacheStatus.contains(status), "\(first)-\(last): \(answer.cacheStatus)")
            }
            try get(1_000, 1_999, is: "stored")
            try get(1_000, 1_999, is: "hit")
            try get(1_200, 1_299, is: "hit")
            // What is partly in it is asked for by itself, and takes its place.
            try get(1_900, 2_899, is: "stored")
            #expect(origin.requests("/x").last?["range"] == "bytes=1900-2899")
            #expect(origin.requests("/x").last?["if-range"] == nil)
            try get(2_000, 2_099, is: "hit")
            try get(1_000, 1_999, is: "stored")
            #expect(origin.count("/x") == 3)
            // It is never taken for the whole.
            #expect(try proxy.get("/x").isWhole(10_000))
            try get(5_000, 5_999, is: "hit")
            #expect(origin.count("/x") == 4)
        }
    }

    @Test(arguments: ["ETag: W/\"v1\"", "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT"])
    func `a stale part without a strong tag is validated with its own validator`(_ validator: String) throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x", Self.untagged(10_000, "Cache-Control: max-age=10", "Age: 20", validator))
            expect(try proxy.get("/x", "Range: bytes=0-999"), is: 0..<1_000, of: 10_000)
            origin.on("/x") { _ in [.answer(304, "Cache-Control: max-age=60", validator)] }
            expect(try proxy.get("/x", "Range: bytes=100-199"), is: 100..<200, of: 10_000)
            let asked = origin.requests("/x").last
            #expect(asked?["if-none-match"] != nil || asked?["if-modified-since"] != nil)
            expect(try proxy.get("/x", "Range: bytes=0-999"), is: 0..<1_000, of: 10_000)
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a stale part without a validator is requested again, and a 304 to that is not accepted`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let stale = "stale-while-revalidate=0, stale-if-error=600"
            origin.on("/x", Self.untagged(10_000, "Cache-Control: max-age=10, \(stale)", "Age: 20"))
            expect(try proxy.get("/x", "Range: bytes=0-999"), is: 0..<1_000, of: 10_000)
            origin.on("/x", Self.untagged(10_000, "Cache-Control: max-age=60, \(stale)"))
            expect(try proxy.get("/x", "Range: bytes=100-199"), is: 100..<200, of: 10_000)
            let asked = origin.requests("/x").last
            #expect(asked?["range"] == "bytes=100-199" && asked?["if-none-match"] == nil)
            #expect(asked?["if-modified-since"] == nil && asked?["if-range"] == nil)
            let hit = try proxy.get("/x", "Range: bytes=110-119")
            expect(hit, is: 110..<120, of: 10_000)
            #expect(hit.cacheStatus.contains("hit") && origin.count("/x") == 2)
        }
    }

    @Test func `waiters for a part without a tag get their own ranges, and If-Range compares the date`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let modified = "Thu, 01 Jan 2026 00:00:00 GMT", gate = Gate()
            let file = Self.untagged(10_000, "Cache-Control: max-age=60", "Last-Modified: \(modified)")
            origin.on("/x") { [.gate(gate)] + file($0) }
            let crowd = proxy.crowd(5, get: "/x", "Range: bytes=0-999")
            try eventually("it is asked for") { origin.count("/x") == 1 }
            let inner = proxy.crowd(5, get: "/x", "Range: bytes=10-19")
            try proxy.joined(10)
            gate.open()
            for answer in crowd.finished() { expect(answer, is: 0..<1_000, of: 10_000) }
            for answer in inner.finished() { expect(answer, is: 10..<20, of: 10_000) }
            expect(
                try proxy.get("/x", "Range: bytes=20-29", "If-Range: \(modified)"), is: 20..<30, of: 10_000)
            #expect(origin.count("/x") == 1)
            let other = try proxy.get("/x", "Range: bytes=20-29", "If-Range: Thu, 01 Jan 2025 00:00:00 GMT")
            #expect(other.status == 200 && other.isWhole(10_000))
        }
    }

    @Test func `a part with a strong tag and one without are not combined`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x", Self.file(10_000))
            try proxy.get("/x", "Range: bytes=0-999")
            // A second server that sends no tags.
            origin.on("/x", Self.untagged(10_000, "Cache-Control: max-age=60"))
            expect(try proxy.get("/x", "Range: bytes=500-1499"), is: 500..<1_500, of: 10_000)
            let inside = try proxy.get("/x", "Range: bytes=600-699")
            expect(inside, is: 600..<700, of: 10_000)
            #expect(inside["etag"] == nil && inside.cacheStatus.contains("hit"))
        }
    }

    // MARK: - As the bytes come

    @Test func `stored bytes are sent while missing bytes are fetched`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let rest = Gate()
            origin.on("/x", Self.file(30_000))
            try proxy.get("/x", "Range: bytes=0-9999")
            try proxy.get("/x", "Range: bytes=20000-29999")
            origin.on("/x") { request in
                let range = Self.range(request["range"] ?? "", of: 30_000) ?? 0..<30_000
                return [
                    .head(
                        206, "Cache-Control: max-age=60", "ETag: \"v1\"", "Content-Length: 10000",
                        "Content-Range: bytes 10000-19999/30000"),
                    .pattern(range.lowerBound..<range.lowerBound + 5_000), .gate(rest),
                    .pattern(range.lowerBound + 5_000..<range.upperBound),
                ]
            }
            let crowd = proxy.crowd(20, get: "/x")
            try eventually("all have what there is") { crowd.answers.allSatisfy { $0.body.length == 15_000 } }
            rest.open()
            #expect(
                crowd.finished().allSatisfy {
                    $0.status == 200 && $0.isWhole(30_000) && $0["content-length"] == "30000"
                })
            #expect(origin.requests("/x").last?["range"] == "bytes=10000-19999")
            #expect(origin.count("/x") == 3)
            try proxy.fetchesEnd(of: "/x")
            #expect(try proxy.get("/x").isWhole(30_000))
            #expect(origin.count("/x") == 3, "three parts are the whole")
        }
    }

    @Test func `a range of a full response in flight is not requested again`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let rest = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "ETag: \"v1\"", "Content-Length: 10000"),
                    .pattern(0..<5_000), .gate(rest), .pattern(5_000..<10_000),
                ]
            }
            let whole = proxy.crowd(1, get: "/x")
            try eventually("half is there") { whole.answers.allSatisfy { $0.body.length == 5_000 } }
            expect(try proxy.send("GET", "/x", "Range: bytes=1000-1999"), is: 1_000..<2_000, of: 10_000)
            rest.open()
            #expect(whole.finished().allSatisfy { $0.isWhole(10_000) })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `different ranges are fetched at the same time and combined`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in [.gate(gate)] + Self.file(40_000)(request) }
            let crowds = (0..<4).map { index in
                proxy.crowd(3, get: "/x", "Range: bytes=\(index * 10_000)-\(index * 10_000 + 9_999)")
            }
            try proxy.joined(12)
            try eventually("each range is asked for") { origin.count("/x") == 4 }
            gate.open()
            for (index, crowd) in crowds.enumerated() {
                for answer in crowd.finished() { expect(answer, is: index * 10_000..<(index + 1) * 10_000, of: 40_000) }
            }
            try proxy.fetchesEnd(of: "/x")
            let whole = try proxy.get("/x")
            #expect(whole.status == 200 && whole.isWhole(40_000) && whole.cacheStatus.contains("hit"))
            #expect(origin.count("/x") == 4)
        }
    }

    // MARK: - Within a larger one

    @Test func `a range within a larger one in flight joins the fetch`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let (head, rest) = (Gate(), Gate())
            origin.on("/x") { _ in
                [
                    .gate(head),
                    .head(
                        206, "Cache-Control: max-age=60", "ETag: \"v1\"", "Content-Length: 8000",
                        "Content-Range: bytes 1000-8999/40000"),
                    .pattern(1_000..<5_000), .gate(rest), .pattern(5_000..<9_000),
                ]
            }
            let larger = proxy.crowd(1, get: "/x", "Range: bytes=1000-8999")
            try eventually("it is asked for") { origin.count("/x") == 1 }
            let early = proxy.crowd(3, get: "/x", "Range: bytes=1000-1999")
            try proxy.joined(4)
            head.open()
            for answer in early.finished() { expect(answer, is: 1_000..<2_000, of: 40_000) }
            expect(try proxy.send("GET", "/x", "Range: bytes=2000-4999"), is: 2_000..<5_000, of: 40_000)
            let late = proxy.crowd(3, get: "/x", "Range: bytes=8990-8999")
            try proxy.joined(8)
            rest.open()
            for answer in late.finished() { expect(answer, is: 8_990..<9_000, of: 40_000) }
            for answer in larger.finished() { expect(answer, is: 1_000..<9_000, of: 40_000) }
            #expect(origin.count("/x") == 1)
        }
    }

    @Test(arguments: [
        "bytes=500-1500", "bytes=8000-9000", "bytes=2000-", "bytes=-10", "bytes=600000-600009", "bytes=1000-600000",
    ])
    func `a range outside the one in flight, or far behind its start, is fetched`(range: String) throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let gate = Gate()
            let last = range.contains("60000") ? 699_999 : 8_999
            origin.on("/x") { request in (request.number == 1 ? [.gate(gate)] : []) + Self.file(700_000)(request) }
            let larger = proxy.crowd(1, get: "/x", "Range: bytes=1000-\(last)")
            try eventually("it is asked for") { origin.count("/x") == 1 }
            expect(
                try proxy.send("GET", "/x", "Range: \(range)"), is: try #require(Self.range(range, of: 700_000)),
                of: 700_000)
            gate.open()
            for answer in larger.finished() { expect(answer, is: 1_000..<last + 1, of: 700_000) }
            #expect(origin.count("/x") == 2)
        }
    }

    /// What the origin says to the larger range, and how often it is asked in all.
    @Test(arguments: [
        ("whole", 1), ("shorter", 2), ("private", 2), ("416", 2), ("503", 1), ("weak", 1),
    ])
    func `a waiter for a larger range gets its own range, whatever the response`(what: String, asked: Int) throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                guard request.number == 1 else { return Self.file(40_000)(request) }
                let (fresh, tag) = ("Cache-Control: max-age=60", "ETag: \"v1\"")
                switch what {
                case "whole": return [.gate(gate), .answer(200, fresh, tag, pattern: 40_000)]
                case "shorter":
                    return [
                        .gate(gate), .head(206, fresh, tag, "Content-Length: 100", "Content-Range: bytes 0-99/40000"),
                        .pattern(0..<100),
                    ]
                case "private":
                    return [
                        .gate(gate),
                        .head(
                            206, "Cache-Control: private", tag, "Content-Length: 9000",
                            "Content-Range: bytes 0-8999/40000"), .pattern(0..<9_000),
                    ]
                case "weak":
                    return [
                        .gate(gate),
                        .head(
                            206, fresh, "ETag: W/\"v1\"", "Content-Length: 9000", "Content-Range: bytes 0-8999/40000"),
                        .pattern(0..<9_000),
                    ]
                case "416": return [.gate(gate), .answer(416, "Content-Range: bytes */40000")]
                default: return [.gate(gate), .answer(503, body: "busy")]
                }
            }
            let larger = proxy.crowd(1, get: "/x", "Range: bytes=0-8999")
            try eventually("it is asked for") { origin.count("/x") == 1 }
            let inner = proxy.crowd(1, get: "/x", "Range: bytes=1000-1999")
            try proxy.joined(2)
            gate.open()
            for answer in inner.finished() {
                if what == "503" {
                    #expect(answer.status == 503)
                } else {
                    expect(answer, is: 1_000..<2_000, of: 40_000)
                }
            }
            _ = larger.finished()
            #expect(origin.count("/x") == asked)
        }
    }

    @Test func `a request for a range of another version gets the full current version`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in (request.number == 1 ? [.gate(gate)] : []) + Self.file(40_000)(request) }
            let larger = proxy.crowd(1, get: "/x", "Range: bytes=0-8999")
            try eventually("it is asked for") { origin.count("/x") == 1 }
            let other = proxy.crowd(1, get: "/x", "Range: bytes=1000-1999", "If-Range: \"v0\"")
            try proxy.joined(2)
            gate.open()
            #expect(other.finished().allSatisfy { $0.status == 200 && $0.isWhole(40_000) })
            for answer in larger.finished() { expect(answer, is: 0..<9_000, of: 40_000) }
        }
    }

    // MARK: - Cut off

    @Test(arguments: [true, false])
    func `a full response that was cut off twice is completed piece by piece`(chunked: Bool) throws {
        try scenario(.resume(0)) { origin, proxy in
            origin.on("/x") { request in
                let fields = ["Cache-Control: max-age=60", "ETag: \"v1\""]
                switch request.number {
                case 1:
                    return chunked
                        ? [.head(200, fields + ["Transfer-Encoding: chunked"]), .chunk(pattern: 0..<5_000), .close]
                        : [.head(200, fields + ["Content-Length: 20000"]), .pattern(0..<5_000), .close]
                case 2:
                    return [
                        .head(206, fields + ["Content-Length: 15000", "Content-Range: bytes 5000-19999/20000"]),
                        .pattern(5_000..<12_000), .reset,
                    ]
                default:
                    return Self.file(20_000)(request)
                }
            }
            let first = try proxy.get("/x")
            #expect(!first.isClean && first.body.length == 5_000)
            let second = try proxy.get("/x")
            #expect(second.status == 200 && !second.isClean && second.body.length <= 12_000 && second.body.isIntact)
            let third = try proxy.get("/x")
            #expect(third.status == 200 && third.isWhole(20_000))
            let ranges = origin.requests("/x").map { $0["range"] ?? "" }
            #expect(ranges[0] == "" && ranges[1] == "bytes=5000-" && ranges.count == 3)
            // A reset may take bytes along that were on their way.
            let offset = try #require(ranges[2].wholeMatch(of: /bytes=(\d+)-/).flatMap { Int($0.1) })
            #expect(5_000...12_000 ~= offset)
            #expect(try proxy.get("/x").isWhole(20_000))
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a response that broke the rules of framing is not kept`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .head(200, "Cache-Control: max-age=60", "ETag: \"v1\"", "Transfer-Encoding: chunked"),
                        .chunk("good"), .raw("nonsense\r\n"),
                    ]
                    : [.answer(200, "Cache-Control: max-age=60", "ETag: \"v1\"", body: "goodness")]
            }
            let (first, second) = (try proxy.get("/x"), try proxy.get("/x"))
            #expect(!first.isClean && second.text == "goodness")
            #expect(origin.requests("/x").last?["range"] == nil)
        }
    }

    // MARK: - The enemy

    private static let letters = "abcdefghijklmnopqrstuvwxyz"

    /// What an origin may say to `bytes=5-9` where 0 to 4 are stored under the tag "a", so that it must not be combined
    /// with those.
    @Test(arguments: [
        ["ETag: \"b\"", "Content-Range: bytes 5-9/26"], ["ETag: W/\"a\"", "Content-Range: bytes 5-9/26"],
        ["Content-Range: bytes 5-9/26"],
        ["ETag: \"a\"", "Content-Range: bytes 5-9/27"], ["ETag: \"a\"", "Content-Range: bytes 6-10/26"],
        ["ETag: \"a\"", "Content-Range: bytes 5-8/26"],
        ["ETag: \"a\"", "Content-Range: bytes 0-4/26"], ["ETag: \"a\"", "Content-Range: bytes 5-9/9"], ["ETag: \"a\""],
        ["ETag: \"a\"", "Content-Range: bytes 5-9/26", "Content-Range: bytes 5-9/26"],
        ["ETag: \"a\"", "Content-Range: lines 5-9/26"],
        ["ETag: \"a\"", "Content-Range: bytes 5-9/26", "Content-Type: multipart/byteranges; boundary=x"],
    ])
    func `a part that does not fit is never combined`(fields: [String]) throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let fresh = "Cache-Control: max-age=60"
            origin.on("/x") { request in
                switch request["range"] {
                case "bytes=0-4": [.answer(206, fresh, "ETag: \"a\"", "Content-Range: bytes 0-4/26", body: "abcde")]
                case "bytes=5-9": [.head(206, [fresh, "Content-Length: 5"] + fields), .text("VWXYZ")]
                default: [.answer(200, fresh, "ETag: \"c\"", body: Self.letters.uppercased())]
                }
            }
            try proxy.get("/x", "Range: bytes=0-4")
            let answer = try proxy.get("/x", "Range: bytes=0-9")
            // The whole anew, or the new part of it: never the old and the new in one.
            #expect(answer.text != "abcdeVWXYZ" && answer.isClean)
            #expect(answer.text == "ABCDEFGHIJ" || answer.text == Self.letters.uppercased(), "\(answer.text)")
            let again = try proxy.get("/x")
            #expect(again.text == Self.letters.uppercased())
        }
    }

    @Test func `a 416 to a request for missing bytes drops the stored parts`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let fresh = "Cache-Control: max-age=60"
            origin.on("/x") { request in
                switch request["range"] {
                case "bytes=0-4": [.answer(206, fresh, "ETag: \"a\"", "Content-Range: bytes 0-4/26", body: "abcde")]
                case "bytes=5-": [.answer(416, "Content-Range: bytes */5")]
                default: [.answer(200, fresh, "ETag: \"a\"", body: "abcde")]
                }
            }
            try proxy.get("/x", "Range: bytes=0-4")
            let whole = try proxy.get("/x")
            #expect(whole.status == 200 && whole.text == "abcde")
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a 416 to one range does not keep other requests from sharing`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request["range"] == "bytes=99-"
                    ? [.answer(416, "Content-Range: bytes */5")]
                    : [
                        .gate(gate),
                        .answer(
                            206, "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-1/5", body: "ab"),
                    ]
            }
            #expect(try proxy.get("/x", "Range: bytes=99-").status == 416)
            let crowd = proxy.crowd(10, get: "/x", "Range: bytes=0-1")
            try proxy.joined(11)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "ab" })
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a part shorter than its range is cut off and not stored`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .head(
                            206, "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-9/26",
                            "Transfer-Encoding: chunked"), .chunk("abcde"), .lastChunk(),
                    ]
                    : [
                        .answer(
                            206, "Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-9/26",
                            body: "abcdefghij")
                    ]
            }
            #expect(try !proxy.get("/x", "Range: bytes=0-9").isClean)
            let again = try proxy.get("/x", "Range: bytes=0-9")
            #expect(again.isClean && again.text == "abcdefghij")
            #expect(origin.requests("/x").last?["range"] == "bytes=0-9")
        }
    }

    @Test func `an origin whose every response is a new version does not end the wait of any client`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                let tag = "ETag: \"\(request.number)\""
                guard let range = request["range"].flatMap({ Self.range($0, of: 26) }) else {
                    return [.answer(200, "Cache-Control: max-age=60", tag, body: Self.letters)]
                }
                let part = String(Self.letters.dropFirst(range.lowerBound).prefix(range.count))
                return [
                    .answer(
                        206, "Cache-Control: max-age=60", tag,
                        "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/26", body: part)
                ]
            }
            for _ in 0..<5 {
                let (first, second) = (try proxy.get("/x", "Range: bytes=0-4"), try proxy.get("/x", "Range: bytes=3-9"))
                #expect(first.text == "abcde" && second.text == "defghij")
            }
            let crowds = (0..<4).map { proxy.crowd(5, get: "/x", "Range: bytes=\($0)-\($0 + 9)") }
            for (start, crowd) in crowds.enumerated() {
                let expected = String(Self.letters.dropFirst(start).prefix(10))
                #expect(crowd.finished().allSatisfy { $0.isClean && $0.text == expected })
            }
        }
    }

    @Test func `an origin without ranges is asked for the full response by each client, or once`() throws {
        try scenario(.maxObjectSize(100_000)) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", "ETag: \"v1\"", pattern: 300_000)] }
            for start in [0, 1_000, 250_000] {
                let answer = try proxy.get("/x", "Range: bytes=\(start)-\(start + 999)")
                // What goes through as it is may be the whole; what is shared is cut to the range here.
                if answer.status == 206 {
                    expect(answer, is: start..<start + 1_000, of: 300_000)
                } else {
                    #expect(answer.isWhole(300_000))
                }
            }
            #expect(origin.count("/x") <= 4)
        }
    }

    /// Lookup says that the stored parts, once confirmed, are all that is wanted; the 304 has fields by which more is.
    @Test(arguments: [
        (["Range: bytes=0-4", "If-Range: \"a\""], tells: ["ETag: W/\"a\""], wanted: "abcde"),
        (
            ["Range: bytes=20-24", "If-Modified-Since: Mon, 01 Jan 2024 00:00:00 GMT"],
            ["ETag: \"a\"", "Last-Modified: Tue, 02 Jan 2024 00:00:00 GMT"], "uvwxy"
        ),
    ])
    func `a 304 to a client that wants more than is stored is followed by a request for the rest`(
        _ fields: [String], tells: [String], wanted: String
    ) throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x") { request in
                let (dated, redated) =
                    ("Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT", "Last-Modified: Tue, 02 Jan 2024 00:00:00 GMT")
                if request["if-none-match"] != nil {
                    return [.head(304, tells.joined(separator: "\r\n"), "Cache-Control: max-age=60")]
                }
                guard let range = request["range"].flatMap({ Self.range($0, of: 26) }), request.number == 1 else {
                    return [.answer(200, "ETag: \"a\"", redated, "Cache-Control: max-age=60", body: Self.letters)]
                }
                let part = String(Self.letters.dropFirst(range.lowerBound).prefix(range.count))
                return [
                    .answer(
                        206, "ETag: \"a\"", dated, "Cache-Control: max-age=60",
                        "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/26", body: part)
                ]
            }
            try proxy.get("/x", "Range: bytes=0-9")
            let answer = try proxy.get("/x", (["Cache-Control: no-cache"] + fields).joined(separator: "\r\n"))
            #expect(answer.isClean && answer.status == 206 && answer.text == wanted, "\(answer.status) \(answer.text)")
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `a 416 from the proxy may not be stored by other caches`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in
                [.answer(200, "Cache-Control: max-age=60", "Expires: 0", "ETag: \"v1\"", body: "abc")]
            }
            try proxy.get("/x")
            let answer = try proxy.get("/x", "Range: bytes=5-9")
            #expect(answer.status == 416 && answer["content-range"] == "bytes */3")
            #expect(answer["cache-control"] == "no-store" && answer["expires"] == nil && answer["etag"] == nil)
        }
    }

    @Test func `waiters for a part that the origin does not send request at the same time`() throws {
        try scenario(.rangeMisses("part"), .maxObjectSize(100_000)) { origin, proxy in
            let first = Gate()
            let others = Gate()
            origin.on("/x") { request in
                [.gate(request.number == 1 ? first : others)]
                    + [.answer(200, "Cache-Control: max-age=60", "ETag: \"v1\"", pattern: 300_000)]
            }
            let crowd = proxy.crowd(6, get: "/x", "Range: bytes=250000-250999")
            try proxy.joined(6)
            first.open()
            try eventually("all others ask at once") { origin.count("/x") == 6 }
            others.open()
            #expect(crowd.finished().allSatisfy { $0.isClean })
        }
    }

    @Test func `each client fetches its own part of an unshareable response, all at the same time`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            let first = Gate()
            let others = Gate()
            origin.on("/x") { request in
                [.gate(request.number == 1 ? first : others)]
                    + [.answer(206, "Cache-Control: private", "ETag: \"a\"", "Content-Range: bytes 2-3/10", body: "23")]
            }
            let crowd = proxy.crowd(8, get: "/x", "Range: bytes=2-3")
            try proxy.joined(8)
            first.open()
            try eventually("all others ask at once") { origin.count("/x") == 8 }
            others.open()
            #expect(crowd.finished().allSatisfy { $0.status == 206 && $0.text == "23" })
        }
    }

    @Test func `a stale part that has the whole range is served when the origin fails`() throws {
        try scenario(.rangeMisses("part"), .staleIfError(.seconds(100))) { origin, proxy in
            origin.on("/x") { request in
                request.number == 1
                    ? [
                        .answer(
                            206, "Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", "Content-Range: bytes 0-4/26",
                            body: "abcde")
                    ]
                    : [.answer(503, body: "down")]
            }
            try proxy.get("/x", "Range: bytes=0-4")
            let stale = try proxy.get("/x", "Range: bytes=1-2")
            #expect(stale.status == 206 && stale.text == "bc")
            #expect(try proxy.get("/x", "Range: bytes=1-8").status == 503)
        }
    }

    @Test func `a purge removes the parts too`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x", Self.file(1_000))
            try proxy.get("/x", "Range: bytes=0-99")
            #expect(try (200..<300).contains(proxy.purge("http://\(proxy.host)/x").status))
            try proxy.get("/x", "Range: bytes=0-99")
            #expect(origin.count("/x") == 2)
        }
    }
}
