import Testing

/// What a route says for itself goes before what is said for all.
@Suite(.scenario) struct RouteSettingTests {
    struct Choice: Sendable, CustomTestStringConvertible {
        let forAll: Setting
        let forRoute: Setting
        /// Whether a client gets again what the first got.
        let getsFirst: Bool

        var testDescription: String { "\(forRoute.entry.key): \(forAll.entry.value), \(forRoute.entry.value)" }

        static func cookies(_ forAll: String, _ forRoute: String, getsFirst: Bool) -> Self {
            Self(
                forAll: .other(section: "caching", key: "set-cookie", value: forAll),
                forRoute: .other(section: "route", key: "set-cookie", value: forRoute), getsFirst: getsFirst)
        }

        static func refresh(_ forAll: String, _ forRoute: String, getsFirst: Bool) -> Self {
            Self(
                forAll: .other(section: "caching", key: "stale-while-revalidate", value: forAll),
                forRoute: .other(section: "route", key: "stale-while-revalidate", value: forRoute),
                getsFirst: getsFirst)
        }

        static func error(_ forAll: String, _ forRoute: String, getsFirst: Bool) -> Self {
            Self(
                forAll: .other(section: "caching", key: "stale-if-error", value: forAll),
                forRoute: .other(section: "route", key: "stale-if-error", value: forRoute), getsFirst: getsFirst)
        }

        static func unreachable(_ forAll: String, _ forRoute: String, getsFirst: Bool) -> Self {
            Self(
                forAll: .other(section: "caching", key: "stale-if-unreachable", value: forAll),
                forRoute: .other(section: "route", key: "stale-if-unreachable", value: forRoute),
                getsFirst: getsFirst)
        }
    }

    @Test(arguments: [
        Choice.cookies("never", "always", getsFirst: true), .cookies("always", "never", getsFirst: false),
    ])
    func `responses with Set-Cookie are stored as the route says`(_ choice: Choice) throws {
        try scenario(choice.forAll, choice.forRoute) { origin, proxy in
            origin.on("/x") {
                [.answer(200, "Cache-Control: max-age=60", "Set-Cookie: a=b", body: "\($0.number)")]
            }
            try proxy.get("/x")
            #expect(try proxy.get("/x").text == (choice.getsFirst ? "1" : "2"))
        }
    }

    @Test(arguments: [
        Choice.refresh("0s", "1h", getsFirst: true), .refresh("1h", "0s", getsFirst: false),
        .error("0s", "1h", getsFirst: true), .error("1h", "0s", getsFirst: false),
    ])
    func `a stale response is served on an error as the route says`(_ choice: Choice) throws {
        try scenario(choice.forAll, choice.forRoute) { origin, proxy in
            origin.on("/x") { request in
                request.number == 1
                    ? [.answer(200, "Cache-Control: max-age=10", "Age: 20", body: "first")]
                    : [.answer(503, body: "busy")]
            }
            try proxy.get("/x")
            #expect(try proxy.get("/x").text == (choice.getsFirst ? "first" : "busy"))
        }
    }

    @Test(arguments: [
        Choice.unreachable("0s", "1h", getsFirst: true), .unreachable("1h", "0s", getsFirst: false),
    ])
    func `a stale response is served for an origin that is down as the route says`(_ choice: Choice) throws {
        try scenario(choice.forAll, choice.forRoute) { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"a\"", body: "first")]
            }
            try proxy.get("/x")
            origin.goDown()
            #expect(try proxy.get("/x").status == (choice.getsFirst ? 200 : 502))
        }
    }

    @Test(arguments: [(false, true), (true, false)])
    func `a response without lifetime is shared across cookies as the route says`(forAll: Bool, forRoute: Bool) throws {
        try scenario(
            .other(section: "coalescing", key: "share-across-cookies", value: "\(forAll)"),
            .other(section: "route", key: "share-across-cookies", value: "\(forRoute)")
        ) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { [.gate(gate), .answer(200, body: "\($0.number)")] }
            let crowd = Crowd(
                at: proxy.endpoint,
                ["a", "b"].map { proxy.visitor("/x", ["Cookie: session=\($0)"]) })
            try proxy.joined(2)
            gate.open()
            #expect(Set(crowd.finished().map(\.text)) == (forRoute ? ["1"] : ["1", "2"]))
        }
    }

    @Test func `parameters with a prefix that the route ignores are not in the key, and are forwarded`() throws {
        try scenario(.other(section: "route", key: "key", value: "{query: {drop: [gclid, utm_*]}}")) { origin, proxy in
            origin.on("/x") { [.answer(200, "Cache-Control: max-age=60", body: $0.target)] }
            let first = try proxy.get("/x?utm_source=mail&a=1")
            #expect(first.text == "/x?utm_source=mail&a=1")
            for query in ["a=1", "utm_campaign=2&a=1&utm_id=9", "gclid=7&a=1"] {
                #expect(try proxy.get("/x?\(query)").text == "/x?utm_source=mail&a=1", "\(query)")
            }
            #expect(try proxy.get("/x?utm=1&a=1").text == "/x?utm=1&a=1")
        }
    }
}
