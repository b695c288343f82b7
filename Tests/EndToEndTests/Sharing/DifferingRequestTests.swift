import Testing

/// What has no lifetime is shared only among requests that are alike: its origin may have gone by any field, though it
/// does not say so. What holds for cookies, too, is in `PersonalPageTests`.
@Suite(.scenario) struct DifferingRequestTests {
    @Test(arguments: ["User-Agent", "Referer", "X-Request-ID", "Sec-CH-UA", "X-Forwarded-For", "traceparent"])
    func `different browsers share one fetch, whatever their User-Agent`(_ field: String) throws {
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

    @Test func `a coded response without Vary does not reach a client that accepts no coding`() throws {
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

    @Test func `an interim response to a client's own field goes to no other`() throws {
        let teller = Teller.field("X-Api-Key")
        try scenario { origin, proxy in
            let (hints, head) = (Gate(), Gate())
            origin.on("/page") { request in
                [
                    .gate(hints), .interim(103, "Link: </\(request["x-api-key"] ?? "nobody").css>; rel=preload"),
                    .gate(head),
                ]
                    + teller.page(request)
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
