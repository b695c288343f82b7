import Repeatable
import Testing

/// A body that breaks off goes on from its next byte, and no client notices.
@Suite(.largeScenario) struct ResumedResponseTests {
    private static let storesAll: [Setting] = [.workers(2), .memory(mebibytes: 256), .maxObjectSize(64 << 20)]
    private static let large = 30_000_000

    @Test(arguments: Rounds.seeds(2), [false, true])
    func `an origin breaks off five times, and fifty clients get all of it`(seed: UInt64, isChunked: Bool) throws {
        var generator = SeededGenerator(seed: seed)
        let cuts = (0..<5).map { _ in Int.random(in: 1..<Self.large, using: &generator) }.sorted()
        try scenario(settings: Self.storesAll) { origin, proxy in
            let late = Gate()
            let file = BreakingFile(length: Self.large, cuts: cuts, isChunked: isChunked)
            origin.on("/x") { ($0.number == 4 ? [.gate(late)] : []) + file.steps($0) }
            let eager = proxy.crowd(20, get: "/x")
            let slow = proxy.crowd(10, get: "/x", pace: .slow(bytes: 64 << 10, every: .milliseconds(2)))
            try eventually("it has broken off three times", within: .seconds(60)) { origin.count("/x") == 4 }
            let others = proxy.crowd(20, get: "/x")
            try proxy.joined(50)
            late.open()
            for crowd in [eager, slow, others] {
                #expect(crowd.finished(within: .seconds(60)).allSatisfy { $0.isWhole(Self.large) })
            }
            // No byte is requested twice.
            #expect(origin.requests("/x").map { $0["range"] } == [nil] + cuts.map { "bytes=\($0)-" })
            #expect(origin.requests("/x").dropFirst().allSatisfy { $0["if-range"] == "\"v1\"" })
            let hit = try proxy.get("/x")
            #expect(hit.isWhole(Self.large) && hit.cacheStatus.contains("hit"), "\(hit.cacheStatus)")
            #expect(origin.count("/x") == 6)
            #expect(try proxy.metric(.resumes) == 5)
        }
    }

    @Test func `a reset loses at most what was in flight`() throws {
        let cuts = [4_000_000, 9_000_000, 15_000_000]
        try scenario(settings: Self.storesAll) { origin, proxy in
            origin.on("/x", BreakingFile(length: 20_000_000, cuts: cuts, end: .reset).steps)
            #expect(proxy.crowd(10, get: "/x").finished().allSatisfy { $0.isWhole(20_000_000) })
            let requests = origin.requests("/x")
            #expect(requests.count == 4)
            for (request, cut) in zip(requests.dropFirst(), cuts) {
                let first = try #require(BreakingFile.range(request, of: 20_000_000)?.lowerBound)
                #expect(first <= cut && first > cut - (8 << 20))
            }
        }
    }

    @Test func `a request goes on as it was sent, without the conditions of the first one`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let file = BreakingFile(
                length: 900_000, cuts: [300_000], fields: ["Cache-Control: private", "ETag: \"v1\""])
            origin.on("/x") { [.interim(103, "Link: </a>")] + file.steps($0) }
            let answer = try proxy.get(
                "/x?y", "Authorization: Basic eDp5", "If-None-Match: \"v0\"", "X-Own: 1", "Cookie: a=b",
                "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT")
            #expect(answer.isWhole(900_000))
            let requests = origin.requests("/x")
            try #require(requests.count == 2)
            #expect(requests[1]["range"] == "bytes=300000-" && requests[1]["if-range"] == "\"v1\"")
            #expect(requests[1]["if-none-match"] == nil && requests[1]["if-modified-since"] == nil)
            for name in ["authorization", "x-own", "cookie", "host", "via", "x-forwarded-for"] {
                #expect(requests[1][name] == requests[0][name], "\(name)")
            }
            #expect(requests.map(\.target) == ["/x?y", "/x?y"])
            // Not in the middle of a body.
            #expect(answer.interim.count == 1)
        }
    }

    @Test func `a response that only one client may have is resumed, and not stored`() throws {
        try scenario(.workers(1)) { origin, proxy in
            let fields = ["Cache-Control: private", "ETag: \"v1\"", "Set-Cookie: a=b"]
            origin.on("/x", BreakingFile(length: 3_000_000, cuts: [1_000_000], fields: fields).steps)
            let answers = try (1...2).map { _ in try proxy.get("/x") }
            #expect(answers.allSatisfy { $0.isWhole(3_000_000) })
            #expect(origin.requests("/x").map { $0["range"] } == [nil, "bytes=1000000-", nil])
        }
    }

    @Test func `a part goes on to its own end and is stored`() throws {
        try scenario(.rangeMisses("part")) { origin, proxy in
            origin.on("/x", BreakingFile(length: 9_000_000, cuts: [2_000_000, 3_000_000]).steps)
            let answer = try proxy.get("/x", "Range: bytes=1000000-4999999")
            #expect(answer.status == 206 && answer.isClean && answer.body.length == 4_000_000)
            #expect(
                origin.requests("/x").map { $0["range"] } == [
                    "bytes=1000000-4999999", "bytes=2000000-4999999", "bytes=3000000-4999999",
                ])
            let again = try proxy.get("/x", "Range: bytes=1999990-2000009")
            #expect(Array(again.body.kept) == Pattern().bytes(1_999_990..<2_000_010))
            #expect(origin.count("/x") == 3)
        }
    }

    @Test func `an origin that sends less than was requested is asked for the rest`() throws {
        try scenario { origin, proxy in
            let file = BreakingFile(length: 900_000, cuts: [300_000])
            origin.on("/x") { request in
                guard let range = BreakingFile.range(request, of: 900_000), request.number < 4 else {
                    return file.steps(request)
                }
                let less = range.lowerBound..<range.lowerBound + 100_000
                return [BreakingFile.head(of: less, 900_000, file.fields), .pattern(less)]
            }
            let (answer, hit) = (try proxy.get("/x"), try proxy.get("/x"))
            #expect(answer.isWhole(900_000) && hit.cacheStatus.contains("hit"))
            #expect(
                origin.requests("/x").map { $0["range"] } == [nil, "bytes=300000-", "bytes=400000-", "bytes=500000-"])
        }
    }

    @Test func `a slow reader holds the origin back, before and after the cut`() throws {
        try scenario(.workers(2), .memory(mebibytes: 8), .maxObjectSize(1 << 20)) { origin, proxy in
            origin.on("/x", BreakingFile(length: 12_000_000, cuts: [6_000_000]).steps)
            let slow = proxy.crowd(3, get: "/x", pace: .slow(bytes: 64 << 10, every: .milliseconds(5)))
            #expect(slow.finished(within: .seconds(60)).allSatisfy { $0.isWhole(12_000_000) })
            let requests = origin.requests("/x")
            #expect(requests.filter { $0["range"] != nil }.map { $0["range"] }.allSatisfy { $0 == "bytes=6000000-" })
            let resumes = try proxy.metric(.resumes)
            #expect(resumes >= 1)
        }
    }

    @Test func `many bodies that break off share the memory there is`() throws {
        try scenario(.workers(2), .memory(mebibytes: 2), .noProgressTimeout(.seconds(10))) { origin, proxy in
            origin.on("*", BreakingFile(length: 2_000_000, cuts: [700_000, 1_400_000]).steps)
            let visitors = (0..<20).map { number in
                var visitor = proxy.visitor("/\(number)")
                visitor.pace = .slow(bytes: 128 << 10, every: .milliseconds(10))
                return visitor
            }
            let answers = Crowd(at: proxy.endpoint, visitors).finished(within: .seconds(60))
            #expect(answers.allSatisfy { $0.isWhole(2_000_000) || $0.status == 503 })
            #expect(answers.contains { $0.isWhole(2_000_000) })
        }
    }

    @Test func `the log says where a response broke off and where it went on`() throws {
        try scenario(.accessLog) { origin, proxy in
            origin.on("/x", BreakingFile(length: 900_000, cuts: [300_000]).steps)
            #expect(try proxy.get("/x").isWhole(900_000))
            #expect(try proxy.get("/x").isWhole(900_000))
            try eventually("two lines") { try proxy.accessLog.count == 2 }
            #expect(try proxy.accessLog.map { $0["resumed"]?.number } == [1, nil])
            #expect(try proxy.accessLog.allSatisfy { $0["aborted"] == nil && $0["detail"] == nil })
            #expect(
                proxy.diagnostics.contains(
                    "upstream origin: response to GET \(proxy.host) /x broke off after 300000 bytes; resumed at \(origin.host)"
                ), "\(proxy.diagnostics)")
        }
    }
}
