import Testing

/// Queries that differ in what does not matter, as the origin says (No-Vary-Search draft), in the key, in flight, and
/// when invalidated.
@Suite(.scenario) struct SearchConversationTests {
    private static let fresh = "Cache-Control: max-age=600"

    private func clients(_ proxy: Program, _ targets: [String]) -> [Crowd] { targets.map { proxy.crowd(1, get: $0) } }
    private func texts(_ crowds: [Crowd]) -> [String] { crowds.flatMap { $0.finished().map(\.text) } }

    @Test func `equivalent requests in flight make one fetch, for the leader's target`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/p") { request in
                let answer = Step.answer(200, Self.fresh, "No-Vary-Search: params=(\"u\")", body: request.target)
                return request.number == 1 ? [answer] : [.gate(gate), answer]
            }
            try proxy.get("/p?id=1&u=1")
            let targets = ["/p?id=2&u=1", "/p?u=2&id=2", "/p?%69d=2", "/p?id=2&u=%41+b"]
            let crowds = clients(proxy, targets)
            try proxy.joined(5)
            try eventually("it is asked once more") { origin.count("/p") == 2 }
            gate.open()
            let sent = origin.requests("/p")[1].target
            #expect(targets.contains(sent))
            #expect(texts(crowds) == [sent, sent, sent, sent])
            #expect(try proxy.get("/p?u&id=2").text == sent)
            #expect(origin.count("/p") == 2)
        }
    }

    @Test func `an equivalent request joins the response from which the variation is learnt`() throws {
        try scenario { origin, proxy in
            let rest = Gate()
            origin.on("/p") { _ in
                [
                    .head(200, Self.fresh, "No-Vary-Search: except=()", "Content-Length: 2"), .text("a"), .gate(rest),
                    .text("b"),
                ]
            }
            let first = proxy.crowd(1, get: "/p?a=1")
            try eventually("its head is there") { first.answers.allSatisfy { $0.body.length == 1 } }
            let late = clients(proxy, ["/p?a=2", "/p", "/p?a=1"])
            try eventually("they have what there is") {
                late.allSatisfy { $0.answers.allSatisfy { $0.body.length == 1 } }
            }
            rest.open()
            #expect(texts(late + [first]) == ["ab", "ab", "ab", "ab"])
            try proxy.fetchesEnd(of: "/p")
            #expect(origin.count("/p") == 1)
            #expect(try proxy.get("/p?a=9").cacheStatus.contains("hit"))
        }
    }

    @Test
    func `a response serves the waiters that it is equivalent for, and the others fetch their own`() throws {
        try scenario { origin, proxy in
            let (first, second) = (Gate(), Gate())
            origin.on("/p") { request in
                switch request.number {
                case 1: [.answer(200, Self.fresh, "No-Vary-Search: params=(\"u\")", body: request.target)]
                case 2: [.gate(first), .answer(200, Self.fresh, body: request.target)]
                default: [.gate(second), .answer(200, Self.fresh, body: request.target)]
                }
            }
            try proxy.get("/p?id=1&u=0")
            let targets = (1...6).map { "/p?id=2&u=\($0)" }
            let crowds = clients(proxy, targets) + clients(proxy, targets)
            try proxy.joined(13)
            try eventually("it is asked once more") { origin.count("/p") == 2 }
            first.open()
            // Five are left, two clients each, and nobody waits for another.
            try eventually("each has a fetch of its own") { origin.count("/p") == 7 }
            // The next ones know.
            let next = clients(proxy, ["/p?id=2&u=8", "/p?id=2&u=9"])
            try eventually("they are not held up") { origin.count("/p") == 9 }
            second.open()
            #expect(texts(crowds) == targets + targets)
            #expect(texts(next) == ["/p?id=2&u=8", "/p?id=2&u=9"])
            #expect(Set(origin.requests("/p").map(\.target)).count == 9)
            // What holds for other ids holds still.
            #expect(try proxy.get("/p?id=1&u=77").text == "/p?id=1&u=0")
            #expect(try proxy.get("/p?id=2&u=3").text == "/p?id=2&u=3")
        }
    }

    @Test func `a response with a new variation is stored under its own variation`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/p") { request in
                request.number == 1
                    ? [.answer(200, Self.fresh, "No-Vary-Search: params=(\"u\")", body: request.target)]
                    : [.gate(gate), .answer(200, Self.fresh, "No-Vary-Search: params=(\"v\")", body: request.target)]
            }
            try proxy.get("/p?u=1&v=1")
            let crowds = clients(proxy, ["/p?u=1&v=2", "/p?u=2&v=2", "/p?u=3&v=2"])
            try proxy.joined(4)
            gate.open()
            #expect(texts(crowds) == ["/p?u=1&v=2", "/p?u=2&v=2", "/p?u=3&v=2"])
            #expect(origin.count("/p") == 4)
            try proxy.fetchesEnd(of: "/p")
            for u in 1...3 { #expect(try proxy.get("/p?u=\(u)&v=99").text == "/p?u=\(u)&v=2") }
            #expect(origin.count("/p") == 4)
        }
    }

    @Test func `two kinds of alternating responses do not replace each other`() throws {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                [
                    .answer(
                        200, Self.fresh, "No-Vary-Search: params=(\"\(request.target.contains("k=1") ? "u" : "v")\")",
                        body: request.target)
                ]
            }
            for target in ["/p?k=1&u=1", "/p?k=2&v=1", "/p?k=1&n&u=1"] { try proxy.get(target) }
            #expect(try proxy.get("/p?k=1&u=9").text == "/p?k=1&u=1")
            try proxy.get("/p?k=2&n&v=1")
            #expect(try proxy.get("/p?k=2&v=9").text == "/p?k=2&v=1")
            #expect(origin.count("/p") == 4)
        }
    }

    @Test func `a response stored before the variation was known is served until there is a newer one`()
        throws
    {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                request.number == 1
                    ? [.answer(200, Self.fresh, body: "1")]
                    : [.answer(200, Self.fresh, "No-Vary-Search: except=()", body: "\(request.number)")]
            }
            try proxy.get("/p?a=1")
            #expect(try proxy.get("/p?a=2").text == "2")
            #expect(try proxy.get("/p?a=1").text == "1")
            #expect(try proxy.get("/p?a=3").text == "2")
            #expect(try proxy.get("/p?a=1", "Cache-Control: no-cache").text == "3")
            #expect(try proxy.get("/p?a=1").text == "3")
            #expect(try proxy.get("/p").text == "3")
        }
    }

    /// A URL's own response that a plain hit does not answer with: because of what is asked, or of what it is.
    @Test(arguments: [
        ("Range: bytes=0-0,2-2", ""), ("Range: x=0-1", ""), ("Range: bytes=100-", ""),
        ("X-Plain: 1", "Cache-Groups: \"g\""),
    ])
    func `a URL's stored response also serves requests that are no plain hits`(_ asked: String, _ field: String) throws
    {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                request.number == 1
                    ? [.answer(404, Self.fresh, "No-Vary-Search: params=(\"u\")", body: "common")]
                    : [.answer(200, Self.fresh, field.isEmpty ? "X-Nothing: 1" : field, body: "own")]
            }
            try proxy.get("/p?q=1&u=2")
            #expect(try proxy.get("/p?q=1", "Cache-Control: no-cache").text == "own")
            #expect(try proxy.get("/p?q=1", asked).status != 404)
            #expect(origin.count("/p") == 2)
        }
    }

    @Test(arguments: ["Cache-Control: max-age=600|Age: 600", "Cache-Control: no-cache"])
    func `a response of a URL alone that must be validated is preferred to an older equivalent one`(_ fields: String)
        throws
    {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                switch request.number {
                case 1: [.answer(200, Self.fresh, "No-Vary-Search: except=()", body: "common")]
                case 2:
                    [
                        .head(
                            200, fields.split(separator: "|").map(String.init) + ["ETag: \"own\"", "Content-Length: 3"]),
                        .text("own"),
                    ]
                default: [.head(request["if-none-match"] == "\"own\"" ? 304 : 500, "ETag: \"own\"")]
                }
            }
            try proxy.get("/p?u=1")
            #expect(try proxy.get("/p?u=2", "Cache-Control: no-cache").text == "own")
            // Once on the hot path, once beside it.
            #expect(try proxy.get("/p?u=2").text == "own")
            #expect(try proxy.get("/p?u=2", "CDN-Loop: z").text == "own")
            #expect(try proxy.get("/p?u=1").text == "common")
        }
    }

    @Test func `an error without No-Vary-Search does not remove a variation`() throws {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                request.target.contains("wrong")
                    ? [.answer(404, Self.fresh, body: "no")]
                    : [.answer(200, Self.fresh, "No-Vary-Search: except=(\"id\")", body: request.target)]
            }
            try proxy.get("/p?id=1")
            #expect(try proxy.get("/p?id=wrong").status == 404)
            #expect(try proxy.get("/p?id=wrong&x").status == 404)
            #expect(try proxy.get("/p?id=1&x").text == "/p?id=1")
            #expect(origin.count("/p") == 3)
        }
    }

    @Test(arguments: [
        "Cache-Control: private, max-age=600", "Cache-Control: no-store", "Cache-Control: max-age=600|Set-Cookie: a=b",
    ])
    func `a response that is not stored teaches no variation`(_ fields: String) throws {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                request.number == 1
                    ? [
                        .head(
                            200,
                            fields.split(separator: "|").map(String.init) + [
                                "No-Vary-Search: except=()", "Content-Length: 0",
                            ])
                    ]
                    : [.answer(200, Self.fresh, body: request.target)]
            }
            try proxy.get("/p?a=1")
            for target in ["/p?a=2", "/p?a=3"] { #expect(try proxy.get(target).text == target) }
        }
    }

    @Test func `a 304 with another variation does not serve other queries`() throws {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                request["if-none-match"] == nil
                    ? [
                        .answer(
                            200, "Cache-Control: max-age=0", "ETag: \"a\"", "No-Vary-Search: except=()",
                            body: request.target)
                    ]
                    : [.head(304, Self.fresh, "ETag: \"a\"", "No-Vary-Search: params=(\"u\")")]
            }
            try proxy.get("/p?a=1")
            #expect(try proxy.get("/p?a=1").text == "/p?a=1")
            #expect(try proxy.get("/p?a=2").text == "/p?a=2")
        }
    }

    @Test func `an unsafe request invalidates the response that its URL gets, and no other`() throws {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                request.method == "POST"
                    ? [.requestBody, .answer(200)]
                    : [.answer(200, Self.fresh, "No-Vary-Search: params=(\"u\")", body: "\(request.number)")]
            }
            try proxy.get("/p?id=1&u=1")
            try proxy.get("/p?id=2&u=1")
            try proxy.send("POST", "/p?id=1&u=9", body: "x")
            #expect(try proxy.get("/p?id=2&u=5").text == "2")
            #expect(try proxy.get("/p?id=1&u=5").text == "4")
        }
    }

    @Test func `a purge removes the response that its URL gets, and no other`() throws {
        try scenario { origin, proxy in
            origin.on("/p") { request in
                [.answer(200, Self.fresh, "No-Vary-Search: params=(\"u\")", body: "\(request.number)")]
            }
            try proxy.get("/p?id=1&u=1")
            try proxy.get("/p?id=2&u=1")
            #expect(try proxy.purge("http://\(proxy.host)/p?id=1&u=9").status == 200)
            #expect(try proxy.get("/p?id=2&u=5").text == "2")
            #expect(try proxy.get("/p?id=1&u=5").text == "3")
        }
    }

    @Test(arguments: ["purge", "POST"])
    func `a fetch whose URL is invalidated is neither joined nor stored`(_ how: String) throws {
        try scenario { origin, proxy in
            let rest = Gate()
            origin.on("/p") { request in
                request.method == "POST"
                    ? [.requestBody, .answer(200)]
                    : [
                        .head(200, Self.fresh, "No-Vary-Search: params=(\"u\")", "Content-Length: 2"), .text("v"),
                        .gate(rest),
                        .text("\(request.number)"),
                    ]
            }
            let first = proxy.crowd(1, get: "/p?id=1&u=1")
            try eventually("its head is there") { first.answers.allSatisfy { $0.body.length == 1 } }
            if how == "purge" {
                try proxy.purge("http://\(proxy.host)/p?u=2&id=1")
            } else {
                try proxy.send("POST", "/p?u=2&id=1", body: "x")
            }
            let second = proxy.crowd(1, get: "/p?id=1&u=3")
            try eventually("it is asked for anew") { origin.requests("/p").count { $0.method == "GET" } == 2 }
            rest.open()
            let last = "v\(origin.count("/p"))"
            #expect(texts([first, second]) == ["v1", last])
            #expect(try proxy.get("/p?id=1&u=4").text == last)
        }
    }

    @Test(arguments: ["purge", "POST"], [true, false])
    func `a fetch begun before the variation was known and the URL was invalidated is not stored`(
        _ how: String, isKnownMeanwhile: Bool
    ) throws {
        try scenario { origin, proxy in
            let head = Gate()
            origin.on("/p") { request in
                if request.method == "POST" { return [.requestBody, .answer(200)] }
                let answer = Step.answer(200, Self.fresh, "No-Vary-Search: params=(\"u\")", body: "\(request.number)")
                return request.number == 1 ? [.gate(head), answer] : [answer]
            }
            let first = proxy.crowd(1, get: "/p?id=1&u=1")
            try eventually("it is asked for") { origin.count("/p") == 1 }
            if isKnownMeanwhile { try proxy.send("GET", "/p?id=2&u=1") }
            try eventually("it is stored") { try proxy.metric(.inFlight) == 1 }
            if how == "purge" {
                try proxy.purge("http://\(proxy.host)/p?u=2&id=1")
            } else {
                try proxy.send("POST", "/p?u=2&id=1", body: "x")
            }
            head.open()
            #expect(texts([first]) == ["1"])
            #expect(try proxy.get("/p?id=1&u=2").text != "1")
        }
    }
}
