import Testing

/// What has no lifetime is shared only among requests that are alike, in their cookies and in any other field that its
/// origin may have gone by: each gets what it asked for, though the origin does not say that it tells them apart.
@Suite(.scenario) struct PersonalPageTests {
    private static let tellers =
        [Teller.cookie]
        + ["X-HgArg-1", "X-Requested-With", "Accept", "X-Api-Key", "Accept-Language", "Origin"].map { .field($0) }
    /// One of each kind.
    private static let both = [Teller.cookie, .field("X-Api-Key")]

    @Test(arguments: tellers)
    func `requests get their own pages, at first and later, and matching requests share one`(
        _ teller: Teller
    ) throws {
        try scenario { origin, proxy in
            let gates = [Gate(), Gate(), Gate()]
            origin.on("/page") { [.gate(gates[$0.number == 1 ? 0 : $0.number <= 3 ? 1 : 2])] + teller.page($0) }
            let first = teller.crowd(proxy, "/page")
            try proxy.joined(30)
            #expect(origin.count("/page") == 1)
            gates[0].open()
            // The others are released together, and do not wait for one another.
            try eventually("the other two kinds are at the origin") { origin.count("/page") == 3 }
            // All of them, so that none comes when its kind's page is gone.
            try proxy.joined(50)
            gates[1].open()
            #expect(first.finished().map(\.text) == teller.pages)
            #expect(origin.count("/page") == 3)
            // The next crowd does not wait for another kind's fetch.
            let second = teller.crowd(proxy, "/page")
            try eventually("each kind is at the origin at once") { origin.count("/page") == 6 }
            try proxy.joined(80)
            gates[2].open()
            #expect(second.finished().map(\.text) == teller.pages)
            #expect(origin.count("/page") == 6)
        }
    }

    /// What is known of requests with `Authorization` stands beside what is known of the others, whichever was found
    /// out last.
    @Test(arguments: both, [true, false])
    func `requests with and without Authorization do not wait for one another, in several bursts`(
        _ teller: Teller, _ endsWithAuthorization: Bool
    ) throws {
        try scenario { origin, proxy in
            let gates = [Gate(), Gate(), Gate()]
            origin.on("/page") { request in
                (request.number <= 2 ? [] : [.gate(gates[(request.number - 3) / 13])])
                    + (request["authorization"] == nil ? teller.page(request) : [.answer(200, body: "own")])
            }
            // It is found out here.
            let firsts = [teller.line(teller.values.first), "Authorization: Basic eA=="]
            for line in endsWithAuthorization ? firsts : firsts.reversed() { try proxy.get("/page", line) }
            for (storm, gate) in gates.enumerated() {
                let kinds = teller.crowd(proxy, "/page")
                let authorized = proxy.crowd(10, get: "/page", "Authorization: Basic eA==")
                try eventually("each kind, and each with Authorization, is at the origin before any answer") {
                    origin.count("/page") == 2 + 13 * (storm + 1)
                }
                try proxy.joined(2 + 40 * (storm + 1))
                gate.open()
                #expect(kinds.finished().map(\.text) == teller.pages)
                #expect(authorized.finished().allSatisfy { $0.text == "own" })
            }
            #expect(origin.count("/page") == 2 + 13 * gates.count)
            #expect(try proxy.metric(.released) == 0)
        }
    }

    /// Nothing says any more that each needs a validation of its own.
    @Test(arguments: [200, 404], ["", "Cache-Control: no-cache", "Cache-Control: max-age=0, must-revalidate"])
    func `matching requests share the next fetch after an unstored response replaces a personal page`(
        _ status: Int, _ field: String
    ) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { request in
                switch request.number {
                case 1: [.answer(200, field.isEmpty ? "X: y" : field, "ETag: \"1\"", body: "stored")]
                case 2: [.answer(status, body: "another")]
                default: [.gate(gate), .answer(status, body: "another")]
                }
            }
            try proxy.get("/page")
            #expect(try proxy.get("/page").text == "another")
            let crowd = proxy.crowd(20, get: "/page")
            try proxy.joined(22)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "another" })
            #expect(origin.count("/page") == 3)
        }
    }

    /// It is the leader's alone, which is remembered.
    @Test func `after a 304 to requests with Authorization, the next ones do not wait for one another`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { request in
                switch request.number {
                case 1: [.answer(200, "ETag: \"1\"", "Cache-Control: no-cache", body: "stored")]
                case 2: [.answer(404, body: "another")]
                case 3...5: [.answer(304, "ETag: \"1\"")]
                default: [.gate(gate), .answer(304, "ETag: \"1\"")]
                }
            }
            try proxy.get("/page")
            #expect(try proxy.get("/page").text == "another")
            let first = proxy.crowd(3, get: "/page", "Authorization: Basic eA==")
            #expect(first.finished().allSatisfy { $0.text == "stored" })
            let second = proxy.crowd(3, get: "/page", "Authorization: Basic eA==")
            try eventually("all are at the origin at the same time") { origin.count("/page") == 8 }
            gate.open()
            #expect(second.finished().allSatisfy { $0.text == "stored" })
        }
    }

    @Test(
        arguments: both,
        [
            ["Cache-Control: max-age=0"], ["Expires: 0"], ["ETag: \"a\""], ["Cache-Control: max-age=0", "ETag: \"a\""],
            ["Vary: Accept-Encoding"],
        ])
    func `pages without lifetime go to matching requests only, whatever their other fields`(
        _ teller: Teller, _ fields: [String]
    ) throws {
        try scenario { origin, proxy in
            let (first, others) = (Gate(), Gate())
            origin.on("/page") { [.gate($0.number == 1 ? first : others)] + teller.page($0, fields) }
            let crowd = teller.crowd(proxy, "/page")
            try proxy.joined(30)
            #expect(origin.count("/page") == 1)
            first.open()
            try eventually("the other two kinds are at the origin") { origin.count("/page") == 3 }
            try proxy.joined(50)
            others.open()
            #expect(crowd.finished().map(\.text) == teller.pages)
            #expect(origin.count("/page") == 3)
        }
    }

    @Test(
        arguments: [Teller.cookie, .field("Accept")],
        ["Cache-Control: max-age=60", "Last-Modified: \(System.httpDate(-864_000))"])
    func `with storing turned off, a lifetime does not make a page public`(_ teller: Teller, _ field: String) throws {
        try scenario(.other(section: "caching", key: "enabled", value: "false")) { origin, proxy in
            let (first, others) = (Gate(), Gate())
            origin.on("/page") { [.gate($0.number == 1 ? first : others)] + teller.page($0, [field]) }
            let crowd = teller.crowd(proxy, "/page")
            try proxy.joined(30)
            first.open()
            try proxy.joined(50)
            others.open()
            #expect(crowd.finished().map(\.text) == teller.pages)
            #expect(origin.count("/page") == 3)
        }
    }

    @Test(arguments: both, ["Cache-Control: public", "Cache-Control: max-age=60", "Cache-Control: max-age=0, public"])
    func `a page that the origin declares public goes to every client`(_ teller: Teller, _ field: String) throws {
        try scenario { origin, proxy in try expectShared(by: teller, origin, proxy, [field]) }
    }

    @Test(arguments: both) func `the operator can let all requests share a page`(_ teller: Teller) throws {
        try scenario(.other(section: "coalescing", key: "share-across-cookies", value: "true")) { origin, proxy in
            try expectShared(by: teller, origin, proxy, [])
        }
    }

    /// One fetch is for the whole crowd.
    private func expectShared(
        by teller: Teller, _ origin: ScriptedOrigin, _ proxy: Program, _ fields: [String]
    ) throws {
        let gate = Gate()
        origin.on("/page") { _ in [.gate(gate), .head(200, fields + ["Content-Length: 7"]), .text("for all")] }
        let crowd = teller.crowd(proxy, "/page")
        try proxy.joined(30)
        gate.open()
        #expect(crowd.finished().allSatisfy { $0.text == "for all" })
        #expect(origin.count("/page") == 1)
    }

    @Test(arguments: [Teller.cookie, .field("Accept")])
    func `a request during another's page gets its own, a matching request joins`(_ teller: Teller) throws {
        let (value, other) = teller.values
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { request in
                request.number == 1
                    ? [
                        .head(200, ["Content-Length: \(value.utf8.count + 3)"]), .text(value), .gate(gate),
                        .text("..."),
                    ]
                    : teller.page(request)
            }
            let (first, alike) = try (proxy.connect(), proxy.connect())
            for client in [first, alike] {
                try client.send(proxy.request("GET", "/page", [teller.line(value), "User-Agent: \(client === first)"]))
                try client.progress { $0.body.length == value.utf8.count }
            }
            #expect(origin.count("/page") == 1)
            let led = try proxy.metric(.led)
            #expect(led == 1)
            let own = try proxy.send("GET", "/page", teller.line(other))
            #expect(own.text == other)
            let common = try proxy.send("GET", "/page")
            #expect(common.text == Teller.common)
            gate.open()
            let answers = try [first.answer(), alike.answer()]
            #expect(answers.allSatisfy { $0.text == "\(value)..." })
        }
    }
}
