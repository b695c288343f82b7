import Testing

/// Who gets memory while fetches want more than there is.
@Suite(.scenario) struct MemoryShortageTests {
    @Test(.overHTTP1("A stream whose window is closed is cut off once its window opens, or after send-timeout."))
    func `the log reports a response that was cut off for lack of memory`() throws {
        try scenario(.memory(mebibytes: 1), .noProgressTimeout(.seconds(1)), .accessLog) { origin, proxy in
            let rest = Gate()
            origin.on("*") { _ in
                [
                    .head(200, "Cache-Control: no-store", "Content-Length: 4000000"), .pattern(0..<1000), .gate(rest),
                    .pattern(1000..<4_000_000),
                ]
            }
            let clients = (0..<20).map { proxy.crowd(1, get: "/\($0)", pace: .stuck) }
            try eventually("each is asked for, or was refused") { try origin.total + proxy.accessLog.count >= 20 }
            rest.open()
            try eventually("some found no memory") {
                try proxy.accessLog.contains {
                    $0["status"]?.number == 200 && $0["aborted"] == .bool(true) && $0["detail"]?.string == "memory-full"
                }
            }
            withExtendedLifetime(clients) {}
        }
    }

    @Test func `a full store makes room for bodies in flight, however small their share`() throws {
        let share = Setting.other(section: "storage", key: "in-flight-share", value: "1%")
        try scenario(.memory(mebibytes: 1), share) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=600", pattern: 3_000)] }
            origin.on("/chunked") { _ in
                [
                    .head(200, "Cache-Control: no-store", "Transfer-Encoding: chunked"), .chunk(pattern: 0..<100_000),
                    .lastChunk(),
                ]
            }
            origin.on("/announced") { _ in [.answer(200, "Cache-Control: no-store", pattern: 200_000)] }
            for number in 0..<400 { try proxy.get("/\(number)") }
            #expect(try proxy.metric(.storedBytes) > 500_000)
            #expect(try proxy.get("/chunked").isWhole(100_000))
            #expect(try proxy.get("/announced").isWhole(200_000))
        }
    }

    /// Newcomers got what came free before those who waited for it: most were refused, or cut off in their bodies.
    @Test(arguments: [1, 2]) func `successive downloads are served in order, and none is cut off`(
        _ workers: Int
    ) throws {
        let (count, length) = (150, 1_000_000)
        try scenario(
            .workers(workers), .memory(mebibytes: 1), .noProgressTimeout(.seconds(3)), .maxConcurrentFetches(400)
        ) { origin, proxy in
            let begin = Gate()
            for number in 0..<count {
                origin.on("/\(number)") { _ in
                    [
                        .gate(begin), .wait(.milliseconds(20 * number)),
                        .answer(200, "Cache-Control: no-store", pattern: length),
                    ]
                }
            }
            let visitors = (0..<count).map { number in
                var visitor = proxy.visitor("/\(number)")
                visitor.pace = .slow(bytes: 64 << 10, every: .milliseconds(50))
                return visitor
            }
            let crowd = Crowd(at: proxy.endpoint, visitors)
            // A request that comes while memory is short is refused at once.
            try eventually("all are asked for", within: .seconds(30)) { origin.total == count }
            begin.open()
            let answers = crowd.finished(within: .seconds(120))
            let whole = answers.count { $0.isWhole(length) }
            let refused = answers.count { $0.status == 503 }
            note("whole of \(count)", whole)
            #expect(whole + refused == count, "\(count - whole - refused) were cut off")
            #expect(whole > count / 2)
        }
    }
}
