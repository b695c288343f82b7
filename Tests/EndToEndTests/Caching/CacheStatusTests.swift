import Testing

/// `Cache-Status` says only what happened (RFC 9211): each word of it is held against what the origin was asked, and
/// against what the next request gets.
@Suite(.scenario) struct CacheStatusTests {
    /// What a line says.
    private struct Told {
        let isHit: Bool
        let forwarded: String?
        let status: Int?
        let isStored: Bool
        let isCollapsed: Bool
        let timeToLive: Int?
        let detail: String?

        init(_ answer: Answer) {
            let words = answer.cacheStatus.split(separator: ";").dropFirst().map { $0.trimmed }
            func value(_ name: String) -> String? {
                words.first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
            }
            isHit = words.contains("hit")
            forwarded = value("fwd")
            status = value("fwd-status").flatMap { Int($0) }
            isStored = words.contains("stored")
            isCollapsed = words.contains("collapsed")
            timeToLive = value("ttl").flatMap { Int($0) }
            detail = value("detail")
        }
    }

    /// One end that a request can come to.
    struct End: Sendable, CustomTestStringConvertible {
        let name: String
        var fields: [String] = []
        var settings: [Setting] = []
        /// What the origin does first, and what it does from then on.
        let first: [Step]
        var then: [Step]?
        /// Of each answer for which the origin is asked.
        let detail: String?
        var isStored = false

        var testDescription: String { name }
    }

    private static let fresh = "Cache-Control: max-age=600"

    static let ends: [End] = [
        End(name: "stored", first: [.answer(200, fresh, body: "x")], detail: nil, isStored: true),
        End(name: "stored, empty", first: [.answer(200, fresh)], detail: nil, isStored: true),
        End(name: "a 404", first: [.answer(404, fresh, body: "x")], detail: nil, isStored: true),
        End(name: "no-store", first: [.answer(200, "Cache-Control: no-store", body: "x")], detail: "no-store"),
        End(name: "private", first: [.answer(200, "Cache-Control: private", body: "x")], detail: "private"),
        End(name: "a cookie", first: [.answer(200, fresh, "Set-Cookie: a=b", body: "x")], detail: "set-cookie"),
        End(name: "Vary: *", first: [.answer(200, fresh, "Vary: *", body: "x")], detail: "vary-star"),
        End(name: "no freshness", first: [.answer(200, body: "x")], detail: "no-freshness"),
        End(
            name: "no-store of the request", fields: ["Cache-Control: no-store"],
            first: [.answer(200, fresh, body: "x")], detail: "request-no-store"),
        End(
            name: "authorization", fields: ["Authorization: Basic eA=="], first: [.answer(200, fresh, body: "x")],
            detail: "authorization"),
        End(
            name: "a variant", fields: ["Accept-Language: de"],
            first: [.answer(200, fresh, "Vary: Accept-Language", body: "x")], detail: nil, isStored: true),
        End(
            name: "encoded", first: [.answer(200, fresh, "Content-Encoding: gzip", body: "x")], detail: nil,
            isStored: true),
        End(
            name: "chunked",
            first: [
                .head(200, fresh, "Transfer-Encoding: chunked"), .chunk("x"), .lastChunk("X-Trailer: y"),
            ], detail: nil, isStored: true),
        End(
            name: "too large", settings: [.maxObjectSize(64 << 10)],
            first: [.answer(200, fresh, pattern: 65_200)], detail: "too-large"),
        End(
            name: "a large head", settings: [.maxObjectSize(4 << 10)],
            first: [.answer(200, fresh, "X-Large: \(String(repeating: "x", count: 4000))", body: "x")],
            detail: "too-large"),
        End(
            name: "larger than memory allows", settings: [.memory(mebibytes: 1)],
            first: [.answer(200, fresh, pattern: 600_000)], detail: "too-large"),
        End(
            name: "a part", fields: ["Range: bytes=0-3"], settings: [.rangeMisses("part")],
            first: [.answer(206, fresh, "Content-Range: bytes 0-3/9", "ETag: \"x\"", body: "part")], detail: nil,
            isStored: true),
        End(
            name: "a part without a tag", fields: ["Range: bytes=0-3"], settings: [.rangeMisses("part")],
            first: [.answer(206, fresh, "Content-Range: bytes 0-3/9", body: "part")], detail: nil, isStored: true),
        End(
            name: "confirmed", first: [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"x\"", body: "x")],
            then: [.answer(304, fresh, "ETag: \"x\"")], detail: nil, isStored: true),
    ]

    @Test(arguments: ends) func `each outcome is reported as it happened`(_ end: End) throws {
        try scenario(settings: end.settings) { origin, proxy in
            origin.on("/x") { $0.number == 1 ? end.first : end.then ?? end.first }
            var (stored, asked) = (false, 0)
            for _ in 0..<4 {
                let answer = try proxy.send("GET", "/x", end.fields)
                let told = Told(answer), now = origin.count("/x")
                let isAsked = now > asked
                asked = now
                #expect(told.isHit != isAsked && (told.forwarded != nil) == isAsked, "\(answer.cacheStatus)")
                #expect(!stored || !isAsked || end.then != nil, "it was said to be stored: \(answer.cacheStatus)")
                #expect((told.status != nil) == isAsked && !told.isCollapsed)
                if isAsked { #expect(told.detail == end.detail || end.then != nil, "\(answer.cacheStatus)") }
                if told.isHit {
                    #expect(stored && told.detail == nil, "\(answer.cacheStatus)")
                    #expect(told.timeToLive.map { (500...600).contains($0) } ?? false)
                }
                if end.then != nil, asked == 2, isAsked { #expect(told.status == 304) }
                stored = told.isStored || told.isHit
            }
            #expect(stored == end.isStored)
        }
    }

    private enum Kind: String, CaseIterable {
        case plain, varies, part, chunked
    }

    /// Lengths around the bound: whatever else counts, what is said to be stored is a hit, and what is not is none.
    @Test(arguments: [2_000, 4_096, 65_536]) func `at the size limit, a response reported as stored is found`(
        _ limit: Int
    ) throws {
        try scenario(.maxObjectSize(limit), .rangeMisses("part")) { origin, proxy in
            origin.on("*") { request in
                let words = request.path.split(separator: "/")
                guard words.count == 2, let kind = Kind(rawValue: String(words[0])), let length = Int(words[1]) else {
                    return [.answer(404)]
                }
                switch kind {
                case .plain: return [.answer(200, Self.fresh, pattern: length)]
                case .varies:
                    return [
                        .answer(
                            200, Self.fresh, "Vary: Accept, Origin", "Cache-Groups: \"a\", \"b\"", pattern: length)
                    ]
                case .part:
                    return [
                        .answer(
                            206, Self.fresh, "ETag: \"x\"", "Content-Range: bytes 0-\(length - 1)/1000000",
                            pattern: length)
                    ]
                case .chunked:
                    return [
                        .head(200, Self.fresh, "Transfer-Encoding: chunked"), .chunk(pattern: 0..<length), .lastChunk(),
                    ]
                }
            }
            for kind in Kind.allCases {
                var (kept, refused) = (0, 0)
                for length in stride(from: max(1, limit - 1_600), through: limit + 64, by: 64) {
                    let path = "/\(kind)/\(length)", fields = kind == .part ? ["Range: bytes=0-\(length - 1)"] : []
                    let first = try Told(proxy.send("GET", path, fields))
                    let second = try Told(proxy.send("GET", path, fields))
                    // Of what has no length it cannot be known before its end; but then it is remembered.
                    if kind != .chunked { #expect(first.isStored == second.isHit, "\(path)") }
                    #expect(second.isHit || !second.isStored, "\(path)")
                    if second.isHit { kept += 1 } else { refused += 1 }
                }
                #expect(kept > 0 && refused > 0, "\(kind)")
            }
        }
    }

    @Test(arguments: ["no-cache", "max-age=0, must-revalidate"])
    func `an exceeded size limit is also remembered for a page that each request validates`(_ control: String)
        throws
    {
        try scenario(.maxObjectSize(100_000)) { origin, proxy in
            origin.on("/x") { _ in
                [
                    .head(200, "Cache-Control: \(control)", "ETag: \"x\"", "Transfer-Encoding: chunked"),
                    .chunk(pattern: 0..<200_000), .lastChunk(),
                ]
            }
            let told = try (0..<3).map { _ in try Told(proxy.get("/x")) }
            #expect(told.map(\.isStored) == [true, false, false])
        }
    }

    @Test func `a stored response that a 304 makes too large is dropped`() throws {
        try scenario(.maxObjectSize(4_096)) { origin, proxy in
            origin.on("/x") { request in
                request["if-none-match"] == nil
                    ? [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"x\"", body: "x")]
                    : [.answer(304, Self.fresh, "ETag: \"x\"", "X-Long: " + String(repeating: "a", count: 8_000))]
            }
            let told = try (0..<3).map { _ in try Told(proxy.get("/x")) }
            #expect(told.map(\.status) == [200, 304, 200])
            #expect(told.map(\.isStored) == [true, false, true])
        }
    }

    @Test func `a response that exceeded the size limit is reported as stored once it has been stored`() throws {
        try scenario(.maxObjectSize(100_000)) { origin, proxy in
            origin.on("/x") { request in
                [
                    .head(200, Self.fresh, "Transfer-Encoding: chunked"),
                    .chunk(pattern: 0..<(request.number < 4 ? 200_000 : 1_000)), .lastChunk(),
                ]
            }
            let large = try (0..<3).map { _ in try Told(proxy.get("/x")) }
            let isSilent = large[1...].allSatisfy { !$0.isStored && !$0.isHit }
            #expect(isSilent)
            // It has become smaller: nothing is said, and it is kept.
            let small = try Told(proxy.get("/x")), hit = try Told(proxy.get("/x"))
            #expect(!small.isHit && hit.isHit)
        }
    }

    @Test func `every waiter but the leader is reported as collapsed`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, Self.fresh, body: "x")] }
            let crowd = proxy.crowd(10, get: "/x")
            try proxy.joined(10)
            gate.open()
            let told = crowd.finished().map { Told($0) }
            let collapsed = told.filter(\.isCollapsed).count
            let isAllElseSo = told.allSatisfy {
                $0.forwarded == "uri-miss" && $0.isStored && $0.status == 200 && !$0.isHit
            }
            #expect(collapsed == 9 && isAllElseSo)
            let hit = try Told(proxy.get("/x"))
            #expect(hit.isHit && origin.count("/x") == 1)
        }
    }

    @Test func `a stale response served for a failure is reported as such`() throws {
        try scenario { origin, proxy in
            origin.on("/x") {
                $0.number == 1
                    ? [.answer(200, "Cache-Control: max-age=10, stale-if-error=600", "Age: 20", body: "x")]
                    : [.answer(503)]
            }
            let first = try Told(proxy.get("/x")), second = try Told(proxy.get("/x"))
            #expect(first.isStored && first.timeToLive.map { $0 < 0 } ?? false)
            #expect(second.forwarded == "stale" && second.status == 503 && second.detail == "stale-if-error")
            #expect(!second.isStored && !second.isHit && second.timeToLive.map { $0 < 0 } ?? false)
            origin.goDown()
            let third = try Told(proxy.get("/x"))
            #expect(third.forwarded == "stale" && third.status == nil && third.detail == "stale-if-error")
        }
    }
}
