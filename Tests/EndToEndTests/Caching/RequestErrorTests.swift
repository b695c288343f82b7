import Testing

/// Answers that are about one request: it asked too often, its fields are too large, it lacks credentials. Whatever the
/// origin says of how long they last, nobody else gets them, and they change nothing for others (RFC 6585; RFC 9110
/// §15.5; RFC 8470).
@Suite(.scenario) struct RequestErrorTests {
    static let statuses = [
        428, 429, 431, 511, 401, 406, 407, 408, 411, 412, 413, 414, 415, 417, 421, 425, 426,
    ]

    @Test(arguments: statuses)
    func `an error about one request is not stored, whatever its Cache-Control`(_ status: Int) throws {
        try scenario { origin, proxy in
            for (path, control) in [
                ("/a", "Cache-Control: max-age=60"), ("/b", "Cache-Control: public, s-maxage=60"),
                ("/c", "Cache-Control: must-understand, no-store, max-age=60"),
                ("/d", "Expires: \(System.httpDate(60))"),
                ("/e", "CDN-Cache-Control: max-age=60"),
            ] {
                origin.on(path) { request in
                    [
                        request["x-wrong"] == nil
                            ? .answer(200, "Cache-Control: max-age=60", body: "x") : .answer(status, control)
                    ]
                }
                let wrong = try proxy.get(path, "X-Wrong: 1")
                #expect(wrong.status == status && !wrong.cacheStatus.contains("stored"), "\(control)")
                #expect(wrong.cacheStatus.contains("detail=status"), "\(wrong.cacheStatus)")
                #expect(try proxy.get(path).text == "x", "\(control)")
                let hit = try proxy.get(path, "X-Wrong: 1")
                #expect(hit.text == "x" && hit.cacheStatus.contains("; hit"), "\(control)")
            }
        }
    }

    @Test(arguments: [400, 401, 414, 422, 429, 494])
    func `the operator's default-ttl does not store an error about one request`(_ status: Int) throws {
        try scenario(.other(section: "caching", key: "default-ttl", value: "60s")) { origin, proxy in
            for (path, control) in [("/a", "X: 1"), ("/b", "Cache-Control: public")] {
                origin.on(path) { request in [request.number == 1 ? .answer(status, control) : .answer(200, body: "x")]
                }
                let answers = [try proxy.get(path), try proxy.get(path), try proxy.get(path)]
                #expect(answers.map(\.status) == [status, 200, 200], "\(control)")
                #expect(answers[2].cacheStatus.contains("; hit"))
            }
        }
    }

    @Test(arguments: [400, 422, 494])
    func `an error that may be about the page is stored if the origin states a lifetime`(_ status: Int) throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(status, "Cache-Control: max-age=60")] }
            try proxy.get("/x")
            let second = try proxy.get("/x")
            #expect(second.status == status && second.cacheStatus.contains("; hit"))
            origin.on("/y") { _ in [.answer(status, "Cache-Control: public", "ETag: \"a\"")] }
            let first = try proxy.get("/y").cacheStatus
            #expect(!first.contains("stored") && first.contains("detail=status"), "\(first)")
        }
    }

    @Test(arguments: [400, 401, 413, 429, 431, 511])
    func `waiters behind an error about one request get the page, with one more fetch`(_ status: Int) throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                let control = status == 400 ? "Cache-Control: max-age=0" : "Cache-Control: public, max-age=60"
                return request.number == 1
                    ? [.gate(gate), .answer(status, control)] : [.answer(200, "Cache-Control: max-age=60", body: "x")]
            }
            let crowd = proxy.crowd(10, get: "/x")
            try proxy.joined(10)
            gate.open()
            let answers = crowd.finished()
            #expect(answers.filter { $0.status == status }.count == 1)
            #expect(answers.filter { $0.status == 200 && $0.text == "x" }.count == 9)
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `an error about one request replaces no stored response, fresh or stale`() throws {
        try scenario(.other(section: "caching", key: "stale-if-unreachable", value: "1h")) { origin, proxy in
            origin.on("/fresh") { request in
                [
                    request.number == 1
                        ? .answer(200, "Cache-Control: max-age=60", body: "x")
                        : .answer(429, "Cache-Control: max-age=60")
                ]
            }
            try proxy.get("/fresh")
            #expect(try proxy.get("/fresh", "Cache-Control: no-cache").status == 429)
            #expect(try proxy.get("/fresh").text == "x")

            origin.on("/stale") { request in
                switch request.number {
                case 1: [.answer(200, "Cache-Control: max-age=0", "ETag: \"a\"", body: "x")]
                case 2: [.answer(429, "Cache-Control: max-age=60", "ETag: \"b\"")]
                case 3: [.answer(304, "ETag: \"a\"")]
                default: [.reset]
                }
            }
            try proxy.get("/stale")
            #expect(try proxy.get("/stale").status == 429)
            #expect(try proxy.get("/stale").text == "x")
            #expect(origin.requests("/stale").map { $0["if-none-match"] } == [nil, "\"a\"", "\"a\""])
            let unreachable = try proxy.get("/stale")
            #expect(unreachable.text == "x" && unreachable.status == 200)
        }
    }

    @Test func `the Vary of an error about one request does not keep others from sharing`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { request in
                request["x-wrong"] != nil
                    ? [.answer(429, "Vary: User-Agent, X-Wrong")]
                    : [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")]
            }
            try proxy.get("/x", "X-Wrong: 1", "User-Agent: wrong")
            let crowd = Crowd(
                at: proxy.endpoint, (0..<10).map { proxy.visitor("/x", ["User-Agent: \($0)"]) })
            try proxy.joined(11)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.text == "x" })
            #expect(origin.count("/x") == 2)
        }
    }

    @Test func `an error about one request does not remove a path's variation`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                [
                    request["x-wrong"] != nil
                        ? .answer(429)
                        : .answer(200, "Cache-Control: max-age=60", "No-Vary-Search: params=(\"b\")", body: "x")
                ]
            }
            try proxy.get("/x?a=1&b=1")
            #expect(try proxy.get("/x?a=1&b=2", "X-Wrong: 1", "Cache-Control: no-cache").status == 429)
            let third = try proxy.get("/x?a=1&b=3")
            #expect(third.text == "x" && third.cacheStatus.contains("; hit"), "\(third.cacheStatus)")
        }
    }
}
