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

    @Test func `of what is too large to keep the whole is asked for once, whatever cookies there are`() throws {
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
