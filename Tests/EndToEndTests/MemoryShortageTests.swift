import Testing

/// Who gets memory while fetches want more than there is.
@Suite(.scenario) struct MemoryShortageTests {
    /// Newcomers got what came free before those who waited for it: most were refused, or cut off in their bodies.
    @Test(arguments: [1, 2]) func `downloads that come one after another are served in order, and none is cut off`(
        _ workers: Int
    ) throws {
        let (count, length) = (150, 1_000_000)
        try scenario(
            .workers(workers), .memory(mebibytes: 1), .noProgressTimeout(.seconds(3)), .maxConcurrentFetches(400)
        ) { origin, proxy in
            for number in 0..<count {
                origin.on("/\(number)") { _ in
                    [
                        .wait(.milliseconds(20 * number)), .answer(200, "Cache-Control: no-store", pattern: length),
                    ]
                }
            }
            let visitors = (0..<count).map { number in
                var visitor = proxy.visitor("/\(number)")
                visitor.pace = .slow(bytes: 64 << 10, every: .milliseconds(50))
                return visitor
            }
            let answers = Crowd(at: proxy.endpoint, visitors).finished(within: .seconds(120))
            let whole = answers.count { $0.isWhole(length) }
            let refused = answers.count { $0.status == 503 }
            note("whole of \(count)", whole)
            #expect(whole + refused == count, "\(count - whole - refused) were cut off")
            #expect(whole > count / 2)
        }
    }
}
