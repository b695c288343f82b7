import Testing

/// Ranges of what is not stored yet: the whole is fetched once, and each client gets its part as the bytes come.
@Suite(.scenario) struct RangeFetchTests {
    @Test func `fifty ranges of one cold page cause one fetch`() throws {
        try scenario { origin, proxy in
            let rest = Gate()
            origin.on("/x") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Content-Length: 10"), .text("01234"), .gate(rest),
                    .text("56789"),
                ]
            }
            let crowd = proxy.crowd(50, get: "/x", "Range: bytes=2-3")
            let early = crowd.finished(within: .seconds(10))
            #expect(early.allSatisfy { $0.status == 206 && $0.text == "23" && $0["content-range"] == "bytes 2-3/10" })
            let late = proxy.crowd(1, get: "/x", "Range: bytes=-2")
            rest.open()
            #expect(late.finished().allSatisfy { $0.status == 206 && $0.text == "89" })
            let whole = try proxy.get("/x")
            #expect(whole.text == "0123456789")
            #expect(origin.count("/x") == 1)
        }
    }

    @Test func `a response too large to store is requested in full once, whatever the cookies`() throws {
        try scenario(.maxObjectSize(1 << 20)) { origin, proxy in
            let (first, others) = (Gate(), Gate())
            origin.on("/x") { request in
                request["range"] == nil
                    ? [
                        .gate(first), .head(200, ["ETag: \"a\"", "Content-Length: 20000000"]), .text("01"),
                        .gate(others),
                    ]
                    : [.answer(206, "ETag: \"a\"", "Content-Range: bytes 2-3/20000000", body: "23")]
            }
            let crowd = Crowd(
                at: proxy.endpoint, (0..<6).map { proxy.visitor("/x", ["Range: bytes=2-3", "Cookie: session=\($0)"]) })
            try proxy.joined(6)
            first.open()
            #expect(crowd.finished().allSatisfy { $0.status == 206 && $0.text == "23" })
            // Nor is that forgotten by what one of them gets.
            let later = try proxy.send("GET", "/x", "Range: bytes=2-3", "Cookie: session=1")
            #expect(later.status == 206)
            #expect(origin.requests("/x").count { $0["range"] == nil } == 1)
            others.open()
        }
    }

    /// 20 MB, of which 1 MB may be kept; the first 300 KB of the whole come at once.
    private func large(_ head: Gate, _ rest: Gate) -> ScriptedOrigin.Handler {
        { request in
            request["range"] == nil
                ? [
                    .gate(head), .head(200, "ETag: \"a\"", "Content-Length: 20000000", "Cache-Control: max-age=60"),
                    .pattern(0..<300_000), .gate(rest), .pattern(300_000..<20_000_000),
                ]
                : [
                    .head(
                        206, "ETag: \"a\"", "Content-Range: bytes 19000000-19000009/20000000", "Content-Length: 10",
                        "Cache-Control: max-age=60"),
                    .pattern(19_000_000..<19_000_010),
                ]
        }
    }
    private static let far = "Range: bytes=19000000-19000009"

    @Test func `a range far behind the start does not wait for a full response too large to store`() throws {
        try scenario(.maxObjectSize(1 << 20)) { origin, proxy in
            let (head, rest) = (Gate(), Gate())
            origin.on("/x", large(head, rest))
            let whole = proxy.crowd(1, get: "/x")
            try proxy.joined(1)
            let (far, near) = (
                proxy.crowd(3, get: "/x", Self.far), proxy.crowd(1, get: "/x", "Range: bytes=100-109")
            )
            try proxy.joined(5)
            head.open()
            #expect(far.finished().allSatisfy { $0.status == 206 && $0.body.length == 10 })
            #expect(near.finished().allSatisfy { $0.status == 206 && $0.body.length == 10 })
            #expect(origin.requests("/x").map { $0["range"] } == [nil, "bytes=19000000-19000009"])
            rest.open()
            #expect(whole.finished().allSatisfy { $0.isWhole(20_000_000) })
        }
    }

    @Test func `full responses too large to store are shared, whatever ranges were requested before`() throws {
        try scenario(.maxObjectSize(1 << 20)) { origin, proxy in
            let (none, head, rest) = (Gate(), Gate(), Gate())
            origin.on("/x", large(none, rest))
            none.open()
            #expect(try proxy.get("/x", Self.far).status == 206)
            origin.on("/x", large(head, rest))
            rest.open()
            let crowd = proxy.crowd(10, get: "/x")
            try proxy.joined(12)
            head.open()
            #expect(crowd.finished().allSatisfy { $0.isWhole(20_000_000) })
            #expect(origin.requests("/x").count { $0["range"] == nil } == 2)
        }
    }

    @Test func `each client requests its own part of an unshareable response`() throws {
        try scenario { origin, proxy in
            origin.on("/x") { request in
                request["range"] == nil
                    ? [.answer(200, "Cache-Control: private", body: "0123456789")]
                    : [.answer(206, "Cache-Control: private", "Content-Range: bytes 2-3/10", body: "23")]
            }
            let answers = proxy.crowd(5, get: "/x", "Range: bytes=2-3").finished()
            #expect(answers.allSatisfy { $0.status == 206 && $0.text == "23" })
            #expect(origin.requests("/x").map { $0["range"] } == [nil] + Array(repeating: "bytes=2-3", count: 5))
        }
    }
}
