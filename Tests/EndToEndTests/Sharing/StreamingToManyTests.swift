import Testing

/// 1,000 clients, one cold URL.
@Suite(.largeScenario) struct StreamingToManyTests {
    @Test func `a thousand clients of a cold page cause one fetch and get the bytes as they arrive`() throws {
        try scenario { origin, proxy in
            let length = 200_000
            let start = Gate(), rest = Gate()
            let pieces = (0..<20).map { Step.pattern(length * $0 / 20..<length * ($0 + 1) / 20) }
            origin.on("/page") { _ in
                [
                    .gate(start), .head(200, "Cache-Control: max-age=60", "Content-Length: \(length)"), pieces[0],
                    .gate(rest),
                ] + pieces.dropFirst().flatMap { [.wait(.milliseconds(100)), $0] }
            }
            let crowd = proxy.crowd(1_000, get: "/page")
            try proxy.joined(1_000, within: .seconds(60))
            let begun = Instant.now
            start.open()
            try eventually("all have what there is", within: .seconds(60)) {
                crowd.answers.allSatisfy { $0.body.length == length / 20 }
            }
            rest.open()
            let answers = crowd.finished(within: .seconds(120))

            #expect(origin.count("/page") == 1)
            #expect(answers.count { $0.isWhole(length) } == 1_000)
            let lag = answers.map { ($0.firstByteAt ?? .now) - begun }.max()!
            note("last first byte of 1,000 after the origin's (promised 100 ms)", lag.rounded)
        }
    }

    @Test func `a late joiner gets the first half at once, and the rest as it arrives`() throws {
        try scenario { origin, proxy in
            let half = 500_000
            let rest = Gate()
            origin.on("/page") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Content-Length: \(2 * half)"), .pattern(0..<half),
                    .gate(rest), .pattern(half..<2 * half),
                ]
            }
            let early = proxy.crowd(1, get: "/page")
            try eventually("the first has half") { early.answers[0].body.length == half }
            let late = proxy.crowd(100, get: "/page")
            try eventually("the late ones have half") { late.answers.allSatisfy { $0.body.length == half } }
            note("first byte for late ones", late.answers.map(\.firstByteTook).max()!.rounded)
            rest.open()

            #expect((early.finished() + late.finished()).allSatisfy { $0.isWhole(2 * half) })
            #expect(origin.count("/page") == 1)
            #expect(late.answers.allSatisfy { $0.cacheStatus.contains("collapsed") })
        }
    }

    @Test func `a chunked body streams to all clients`() throws {
        try scenario { origin, proxy in
            let rest = Gate()
            origin.on("/chunks") { _ in
                [
                    .head(200, "Cache-Control: max-age=60", "Transfer-Encoding: chunked"), .chunk(pattern: 0..<70_000),
                    .gate(rest), .chunk(pattern: 70_000..<70_001), .chunk(pattern: 70_001..<150_000), .lastChunk(),
                ]
            }
            let crowd = proxy.crowd(100, get: "/chunks")
            try eventually("all have the first chunk") { crowd.answers.allSatisfy { $0.body.length == 70_000 } }
            rest.open()

            #expect(crowd.finished().allSatisfy { $0.isWhole(150_000) })
            #expect(try proxy.get("/chunks").isWhole(150_000))
            #expect(origin.count("/chunks") == 1)
        }
    }

    /// They are served on loops of their own: the last of them begins when the first has read on already.
    @Test(arguments: [["Content-Length: 3000000"], []])
    func `a response too large to store reaches all waiters whole`(_ length: [String]) throws {
        try scenario(.workers(4), .maxObjectSize(100_000)) { origin, proxy in
            for round in 0..<20 {
                let path = "/\(round)"
                let start = Gate()
                origin.on(path) { _ in
                    [
                        .gate(start),
                        .head(200, ["Cache-Control: max-age=60"] + (length.isEmpty ? ["Connection: close"] : length)),
                        .pattern(0..<3_000_000), length.isEmpty ? .close : .several([]),
                    ]
                }
                let crowd = proxy.crowd(20, get: path)
                try proxy.joined(20 * (round + 1))
                start.open()
                let answers = crowd.finished()
                #expect(answers.count { $0.isWhole(3_000_000) } == 20)
                #expect(origin.count(path) == 1)
            }
        }
    }
}
