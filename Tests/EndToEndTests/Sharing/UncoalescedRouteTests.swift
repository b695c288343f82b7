import Glibc
import Testing

/// On a route with `coalesce: false` no request gets what another one fetched at the same moment.
@Suite(.scenario) struct UncoalescedRouteTests {
    private static let setting = Setting.other(section: "route", key: "coalesce", value: "false")

    /// Answers by cookie, and says nothing about caching.
    private static func page(_ request: Received) -> Step {
        .answer(200, body: request["cookie"] ?? "anonymous")
    }

    @Test func `three simultaneous clients get their own pages, and none is stored`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let gate = Gate()
        origin.on("*") { [.gate(gate), Self.page($0)] }
        let proxy = try Program.serve(
            file: """
                upstreams:
                  - {name: shop, servers: ["\(origin.url)"]}
                routes:
                  - {upstream: shop, path: /own, cache: false, coalesce: false}
                  - {upstream: shop, path: /shared, cache: false}

                """)
        defer { proxy.stop() }
        let users = ["user=a", "user=b", "user=c"]
        let own = users.map { proxy.crowd(1, get: "/own", "Cookie: \($0)") }
        try eventually("each of them is at the origin") { origin.count("/own") == 3 }
        // `cache: false` alone does not keep those of one user apart.
        let shared = (0..<3).map { _ in proxy.crowd(1, get: "/shared", "Cookie: user=a") }
        try proxy.joined(6)
        gate.open()
        let answers = own.map { $0.finished()[0] }
        #expect(answers.map(\.text) == users)
        #expect(answers.allSatisfy { !$0.cacheStatus.contains("collapsed") && !$0.cacheStatus.contains("stored") })
        let together = shared.map { $0.finished()[0] }
        #expect(Set(together.map(\.text)).count == 1)
        #expect((answers + together).allSatisfy { $0.cacheStatus.contains("fwd=bypass") })
        #expect(together.filter { $0.cacheStatus.contains("collapsed") }.count == 2)
        #expect(origin.count("/shared") == 1)
        #expect(try proxy.get("/own", "Cookie: user=d").text == "user=d")
    }

    @Test func `a storable response is stored by each client that fetched one`() throws {
        try scenario(Self.setting) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "\($0.number)")] }
            let crowd = proxy.crowd(3, get: "/x")
            try eventually("each of them is at the origin") { origin.count("/x") == 3 }
            gate.open()
            #expect(Set(crowd.finished().map(\.text)) == ["1", "2", "3"])
            try proxy.fetchesEnd(of: "/x")
            #expect(try proxy.get("/x").cacheStatus.contains("; hit"))
            #expect(origin.count("/x") == 3)
        }
    }

    /// Larger than what is stored by the settings below.
    private static let large = 65_536
    private static let smallObjects = Setting.other(section: "storage", key: "max-object-size", value: "16KiB")

    /// The range that is asked for, else the whole, as static files are served.
    private static func file(_ request: Received, _ fields: String) -> [Step] {
        let length = large
        guard let range = request["range"], let first = Int(range.dropFirst("bytes=".count).prefix { $0 != "-" }) else {
            return [.answer(200, fields, "ETag: \"a\"", body: String(repeating: "x", count: length))]
        }
        return [
            .answer(
                206, fields, "ETag: \"a\"", "Content-Range: bytes \(first)-\(first + 9)/\(length)",
                body: String(repeating: "y", count: 10))
        ]
    }

    @Test(arguments: ["Cache-Control: private", "Cache-Control: max-age=60"])
    func `a range of a response that is not stored is forwarded from the second request on`(_ fields: String) throws {
        try scenario(Self.setting, Self.smallObjects) { origin, proxy in
            origin.on("/x") { Self.file($0, fields) }
            for first in [100, 2_000, 30_000] {
                let answer = try proxy.get("/x", "Range: bytes=\(first)-\(first + 9)")
                #expect(answer.status == 206 && answer.text == String(repeating: "y", count: 10))
            }
            let ranges = origin.requests("/x").map { $0["range"] }
            #expect(ranges == [nil, "bytes=100-109", "bytes=2000-2009", "bytes=30000-30009"])
        }
    }

    @Test func `range-misses applies to an uncoalesced route too`() throws {
        try scenario(Self.setting, .other(section: "route", key: "range-misses", value: "part")) { origin, proxy in
            origin.on("/x") { Self.file($0, "Cache-Control: max-age=60") }
            let crowd = proxy.crowd(2, get: "/x", "Range: bytes=100-109").finished()
            #expect(crowd.allSatisfy { $0.status == 206 })
            let later = try proxy.get("/x", "Range: bytes=102-105")
            #expect(later.cacheStatus.contains("; hit"))
            #expect(origin.requests("/x").allSatisfy { $0["range"] == "bytes=100-109" })
        }
    }

    @Test func `a condition is forwarded once its response is known to be private`() throws {
        try scenario(Self.setting) { origin, proxy in
            let date = "Mon, 01 Jan 2024 00:00:00 GMT"
            origin.on("/x") { request in
                let fields = ["Cache-Control: private", "Last-Modified: \(date)"]
                return [
                    request["if-modified-since"] == nil
                        ? .answer(200, fields[0], fields[1], body: "page") : .answer(304, fields[0], fields[1])
                ]
            }
            for _ in 1...3 {
                let answer = try proxy.get("/x", "If-Modified-Since: \(date)")
                #expect(answer.status == 304)
            }
            #expect(origin.requests("/x").map { $0["if-modified-since"] } == [nil, date, date])
        }
    }

    @Test func `with storing turned off, conditions and ranges are forwarded from the first request on`() throws {
        let route = Self.setting
        try scenario(route, .other(section: "route", key: "cache", value: "false")) { origin, proxy in
            origin.on("/x") { Self.file($0, "Cache-Control: private") }
            let part = try proxy.get("/x", "Range: bytes=100-109")
            #expect(part.status == 206)
            #expect(part.cacheStatus.contains("fwd=bypass; fwd-status=206; detail=caching-off"), "\(part.cacheStatus)")
            origin.on("/y") { _ in [.answer(200, "Cache-Control: max-age=60", body: "page")] }
            let page = try proxy.get("/y", "If-None-Match: \"b\"")
            #expect(page.text == "page" && page.cacheStatus.contains("fwd=bypass"), "\(page.cacheStatus)")
            #expect(origin.requests("/x").map { $0["range"] } == ["bytes=100-109"])
            #expect(origin.requests("/y").map { $0["if-none-match"] } == ["\"b\""])
        }
    }

    @Test func `a stale response is refreshed once in the background, and no client waits`() throws {
        try scenario(Self.setting) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=0, stale-while-revalidate=60", body: "old")]
                    : [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "new")]
            }
            try proxy.get("/x")
            let stale = proxy.crowd(3, get: "/x").finished()
            #expect(stale.allSatisfy { $0.text == "old" }, "\(stale.map(\.text))")
            try eventually("it is refreshed") { origin.count("/x") == 2 }
            gate.open()
            try eventually("the new one is stored") { try proxy.get("/x").text == "new" }
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `a reload that turns coalescing off separates a route's requests, also those that wait`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let gate = Gate()
        origin.on("/x") { [.gate(gate), Self.page($0)] }
        origin.on("/") { _ in [.answer(200)] }
        func file(_ hosts: String, _ route: String) -> String {
            """
            workers: 1
            hosts: \(hosts)
            upstreams:
              - {name: shop, servers: ["\(origin.url)"]}
            routes:
              - {upstream: shop, \(route)}

            """
        }
        let proxy = try Program.serve(file: file("[]", "cache: false"))
        defer { proxy.stop() }
        let before = proxy.crowd(3, get: "/x")
        try proxy.joined(3)
        try System.write(file("[127.0.0.1]", "cache: false, coalesce: false"), to: proxy.configurationPath)
        proxy.signal(SIGHUP)
        try eventually("the new settings hold") { try proxy.get("/", "Host: elsewhere").status == 421 }
        let after = proxy.crowd(3, get: "/x")
        try eventually("each of those who came later is at the origin") { origin.count("/x") == 4 }
        gate.open()
        #expect((before.finished() + after.finished()).allSatisfy { $0.text == "anonymous" })
    }
}
