import Testing

/// What has no lifetime is shared only among requests that are alike: its origin may have gone by any field, though it
/// does not say so.
@Suite(.scenario) struct UnlikeRequestTests {
    private static let fields = ["X-HgArg-1", "X-Requested-With", "Accept", "X-Api-Key", "Accept-Language", "Origin"]
    /// Ten visitors of each of these, in turns; `nil` does not send the field.
    private static let values = ["one", "two", nil]
    private static let expected = (0..<30).map { values[$0 % 3] ?? "none" }

    /// Each with a name of its own, too.
    private static func crowd(_ proxy: Program, _ target: String, _ field: String) -> Crowd {
        Crowd(
            at: proxy.endpoint,
            (0..<30).map { index in
                let own = values[index % 3].map { ["\(field): \($0)"] } ?? []
                return proxy.visitor(target, ["User-Agent: \(index)"] + own)
            })
    }

    private static func page(_ request: Received, _ field: String, _ fields: [String] = []) -> [Step] {
        let body = request[field.lowercased()] ?? "none"
        return [.head(200, fields + ["Content-Length: \(body.utf8.count)"]), .text(body)]
    }

    @Test(arguments: fields)
    func `each gets what it asked for by its fields, in the first round and in later ones`(_ field: String) throws {
        try scenario { origin, proxy in
            let gates = [Gate(), Gate(), Gate()]
            origin.on("/page") { [.gate(gates[$0.number == 1 ? 0 : $0.number <= 3 ? 1 : 2])] + Self.page($0, field) }
            let first = Self.crowd(proxy, "/page", field)
            try proxy.joined(30)
            #expect(origin.count("/page") == 1)
            gates[0].open()
            // The others are released together, and do not wait for one another.
            try eventually("the other two groups are at the origin") { origin.count("/page") == 3 }
            try proxy.joined(50)
            gates[1].open()
            let answers = first.finished().map(\.text)
            #expect(answers == Self.expected)
            let second = Self.crowd(proxy, "/page", field)
            try eventually("each group is at the origin at once") { origin.count("/page") == 6 }
            try proxy.joined(80)
            gates[2].open()
            let later = second.finished().map(\.text)
            #expect(later == Self.expected)
            #expect(origin.count("/page") == 6)
        }
    }

    @Test(arguments: [["Cache-Control: max-age=0"], ["ETag: \"a\""], ["Vary: Accept-Encoding"], ["Expires: 0"]])
    func `whatever it says beside that it does not last`(_ fields: [String]) throws {
        try scenario { origin, proxy in
            let (first, others) = (Gate(), Gate())
            origin.on("/page") { [.gate($0.number == 1 ? first : others)] + Self.page($0, "X-Api-Key", fields) }
            let crowd = Self.crowd(proxy, "/page", "X-Api-Key")
            try proxy.joined(30)
            first.open()
            try proxy.joined(50)
            others.open()
            let answers = crowd.finished().map(\.text)
            #expect(answers == Self.expected)
            #expect(origin.count("/page") == 3)
        }
    }

    @Test func `where nothing is stored a lifetime does not make it everybody's`() throws {
        try scenario(.other(section: "caching", key: "enabled", value: "false")) { origin, proxy in
            let (first, others) = (Gate(), Gate())
            origin.on("/page") {
                [.gate($0.number == 1 ? first : others)] + Self.page($0, "Accept", ["Cache-Control: max-age=60"])
            }
            let crowd = Self.crowd(proxy, "/page", "Accept")
            try proxy.joined(30)
            first.open()
            try proxy.joined(50)
            others.open()
            let answers = crowd.finished().map(\.text)
            #expect(answers == Self.expected)
        }
    }

    @Test(arguments: ["Cache-Control: public", "Cache-Control: max-age=60", "Cache-Control: max-age=0, public"])
    func `what its origin lets everybody have goes to all, whatever their fields`(_ field: String) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { _ in [.gate(gate), .answer(200, field, body: "for all")] }
            let crowd = Self.crowd(proxy, "/page", "X-Api-Key")
            try proxy.joined(30)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "for all" })
            #expect(origin.count("/page") == 1)
        }
    }

    @Test func `the operator can let them share`() throws {
        try scenario(.other(section: "coalescing", key: "share-across-cookies", value: "true")) { origin, proxy in
            let gate = Gate()
            origin.on("/page") { _ in [.gate(gate), .answer(200, body: "for all")] }
            let crowd = Self.crowd(proxy, "/page", "X-Api-Key")
            try proxy.joined(30)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "for all" })
            #expect(origin.count("/page") == 1)
        }
    }

    @Test(arguments: ["User-Agent", "Referer", "X-Request-ID", "Sec-CH-UA", "X-Forwarded-For", "traceparent"])
    func `a crowd of browsers shares one fetch, whatever they say of themselves`(_ field: String) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { _ in [.gate(gate), .answer(200, body: "for all")] }
            let crowd = Crowd(
                at: proxy.endpoint,
                (0..<20).map { proxy.visitor("/page", ["Accept: text/html", "\(field): \($0)"]) })
            try proxy.joined(20)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "for all" })
            #expect(origin.count("/page") == 1)
        }
    }

    @Test func `who comes while the answer to other fields streams gets its own`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/page") { request in
                let own = request["accept"] ?? "none"
                return request.number == 1
                    ? [.head(200, ["Content-Length: \(own.utf8.count + 3)"]), .text(own), .gate(gate), .text("...")]
                    : Self.page(request, "Accept")
            }
            let (first, alike) = try (proxy.connect(), proxy.connect())
            for client in [first, alike] {
                try client.send(proxy.request("GET", "/page", ["Accept: a", "User-Agent: \(client === first)"]))
                try client.progress { $0.body.length == 1 }
            }
            #expect(origin.count("/page") == 1)
            let answer1 = try proxy.send("GET", "/page", "Accept: b")
            #expect(answer1.text == "b")
            let answer2 = try proxy.send("GET", "/page")
            #expect(answer2.text == "none")
            gate.open()
            let answers = try [first.answer(), alike.answer()]
            #expect(answers.allSatisfy { $0.text == "a..." })
        }
    }

    @Test func `a coding without Vary does not reach who takes none`() throws {
        try scenario { origin, proxy in
            let (first, others) = (Gate(), Gate())
            origin.on("/page") { request in
                [.gate(request.number == 1 ? first : others)]
                    + (request["accept-encoding"] == nil
                        ? [.answer(200, body: "plain")] : [.answer(200, "Content-Encoding: gzip", body: "coded")])
            }
            let coded = proxy.crowd(5, get: "/page", "Accept-Encoding: gzip")
            try proxy.joined(5)
            let plain = proxy.crowd(5, get: "/page")
            try proxy.joined(10)
            first.open()
            try proxy.joined(15)
            others.open()
            #expect(coded.finished().allSatisfy { $0.text == "coded" })
            #expect(plain.finished().allSatisfy { $0.text == "plain" })
            #expect(origin.count("/page") == 2)
        }
    }

    @Test func `an interim answer to a field of one's own goes to nobody else`() throws {
        try scenario { origin, proxy in
            let (hints, head) = (Gate(), Gate())
            origin.on("/page") { request in
                [
                    .gate(hints), .interim(103, "Link: </\(request["x-api-key"] ?? "none").css>; rel=preload"),
                    .gate(head),
                ]
                    + Self.page(request, "X-Api-Key")
            }
            let leader = try proxy.connect()
            try leader.send(proxy.request("GET", "/page", ["X-Api-Key: one"]))
            try eventually("it is at the origin") { origin.count("/page") == 1 }
            let other = proxy.crowd(1, get: "/page", "X-Api-Key: two")
            try proxy.joined(2)
            hints.open()
            try leader.progress { !$0.interim.isEmpty }
            head.open()
            let answer = try leader.answer()
            #expect(answer.text == "one")
            let others = other.finished()[0]
            #expect(others.text == "two")
            #expect(others.interim.compactMap { $0["link"] } == ["</two.css>; rel=preload"])
        }
    }
}
