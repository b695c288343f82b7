import Glibc
import Testing

/// On a route with `coalesce: false` no request gets what another one fetched at the same moment.
@Suite(.scenario) struct UncoalescedRouteTests {
    private static let setting = Setting.other(section: "route", key: "coalesce", value: "false")

    /// Answers by cookie, and says nothing about caching.
    private static func page(_ request: Received) -> Step {
        .answer(200, body: request["cookie"] ?? "anonymous")
    }

    @Test func `three clients at once each get their own page, of which nothing is stored`() throws {
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
        // `cache: false` alone does not keep them apart.
        let shared = users.map { proxy.crowd(1, get: "/shared", "Cookie: \($0)") }
        try proxy.joined(3)
        gate.open()
        let answers = own.map { $0.finished()[0] }
        #expect(answers.map(\.text) == users)
        #expect(answers.allSatisfy { !$0.cacheStatus.contains("collapsed") && !$0.cacheStatus.contains("stored") })
        #expect(Set(shared.map { $0.finished()[0].text }).count == 1)
        #expect(origin.count("/shared") == 1)
        #expect(try proxy.get("/own", "Cookie: user=d").text == "user=d")
    }

    @Test func `what may be stored is, by each of those who fetched it`() throws {
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

    @Test func `a stale response is refreshed once in the background, which keeps nobody waiting`() throws {
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

    @Test func `a reload takes a route's requests apart, also those of a crowd`() throws {
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
