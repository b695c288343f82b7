import Testing

/// A client's `If-Modified-Since` where what is stored has no `Last-Modified`: its `Date` takes the place of that, and
/// without one the time at which it was received (RFC 9111 §4.3.2).
@Suite(.scenario) struct ClientDateTests {
    /// Seconds between the response's time and the client's date, and whether the client has the response by that.
    static let dates: [(Int, Bool)] = [(-3_000, false), (-1, false), (0, true), (1, true), (3_000, true)]

    @Test(arguments: dates)
    func `Date takes the place of a missing Last-Modified`(_ seconds: Int, _ isKnown: Bool) throws {
        try scenario { origin, proxy in
            // Not the time of receipt.
            let made = -500
            origin.on("/x") { _ in
                [.answer(200, "Cache-Control: max-age=5000", "Date: \(System.httpDate(made))", body: "hello")]
            }
            let date = try #require(try proxy.get("/x")["date"])
            let since =
                "If-Modified-Since: \(seconds == 0 ? date : System.httpDate(made + seconds + (seconds > 0 ? 60 : -60)))"
            // A plain hit, one that more has to be thought about, HEAD, and a range, which comes second (RFC 9110
            // §13.2.2).
            let answers = [
                try proxy.get("/x", since), try proxy.get("/x", since, "Cache-Control: max-stale"),
                try proxy.send("HEAD", "/x", since), try proxy.get("/x", since, "Range: bytes=0-1"),
            ]
            #expect(answers.map(\.status) == (isKnown ? [304, 304, 304, 304] : [200, 200, 200, 206]))
            #expect(answers.allSatisfy { $0.cacheStatus.contains("; hit") })
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `the time of receipt takes the place of a missing Date`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", "Date:", body: "x")] }
            let added = try #require(try proxy.get("/x")["date"])
            #expect(try proxy.get("/x", "If-Modified-Since: \(added)").status == 304)
            #expect(try proxy.get("/x", "If-Modified-Since: \(System.httpDate(60))").status == 304)
            #expect(try proxy.get("/x", "If-Modified-Since: \(System.httpDate(-60))").status == 200)
        }
    }

    @Test func `a joined request is compared with Date too`() throws {
        try scenario { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")] }
            let visitors = [60, -60].map { proxy.visitor("/x", ["If-Modified-Since: \(System.httpDate($0))"]) }
            let crowd = Crowd(at: proxy.endpoint, visitors)
            try proxy.joined(2)
            gate.open()
            #expect(crowd.finished().map(\.status).sorted() == [200, 304])
        }
    }

    @Test func `a Date in place of Last-Modified does not validate a range`() throws {
        // RFC 9110 §13.1.5: only a date that is Last-Modified, and strong.
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, "Cache-Control: max-age=60", body: "hello")] }
            let date = try #require(try proxy.get("/x")["date"])
            for wish in ["X: plain", "Cache-Control: max-stale"] {
                let answer = try proxy.get("/x", "Range: bytes=0-1", "If-Range: \(date)", wish)
                #expect(answer.status == 200 && answer.text == "hello")
            }
        }
    }
}
