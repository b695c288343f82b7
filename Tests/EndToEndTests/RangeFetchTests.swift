import Testing

/// Ranges of what is not stored yet: the whole is fetched once, and each client gets its part as the bytes come.
@Suite(.scenario) struct RangeFetchTests {
    @Test func `fifty ranges of one cold page are one fetch`() throws {
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

    @Test func `of what may not be shared each client asks for its own part`() throws {
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
