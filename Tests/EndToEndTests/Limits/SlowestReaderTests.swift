import Testing

private let length = 20 << 20
/// Some 4 KB a second.
private let trickle = Visitor.Pace.slow(bytes: 2_048, every: .milliseconds(500))

/// A response too large to be kept goes to all who share it at the pace of the slowest, but not below
/// `coalescing.min-shared-rate`.
@Suite(.scenario) struct SlowestReaderTests {
    /// Which of those who share the response is slow, and how.
    enum SlowOne: Sendable {
        case leads, joins, reads, isOneOfTwo, wantsRange, speaksHTTP10

        fileprivate var count: Int { self == .isOneOfTwo ? 2 : 1 }
        /// Whether it is seen how its answer ends.
        fileprivate var seesEnd: Bool { self == .reads || self == .speaksHTTP10 }
        fileprivate var fields: [String] { self == .wantsRange ? ["Range: bytes=0-\(length - 1)"] : [] }

        fileprivate func visitor(of proxy: Program) -> Visitor {
            var visitor = proxy.visitor("/big", fields)
            visitor.pace = seesEnd ? trickle : .stuck
            if self == .speaksHTTP10 {
                visitor.request = Array("GET /big HTTP/1.0\r\nHost: \(proxy.host)\r\n\r\n".utf8)
            }
            return visitor
        }

        /// For a client of HTTP/1.0 nothing but the end of the connection would be the response's end.
        fileprivate var response: [Step] {
            switch self {
            case .leads, .joins, .reads, .isOneOfTwo: [.answer(200, "Cache-Control: max-age=60", pattern: length)]
            case .wantsRange:
                [
                    .answer(
                        206, "Cache-Control: max-age=60", "ETag: \"1\"",
                        "Content-Range: bytes 0-\(length - 1)/\(2 * length)", pattern: length)
                ]
            case .speaksHTTP10:
                [.head(200, "Cache-Control: max-age=60", "Transfer-Encoding: chunked")]
                    + (0..<length >> 20).map { .chunk(pattern: $0 << 20..<($0 + 1) << 20) } + [.lastChunk()]
            }
        }
    }

    @Test(
        .overHTTP1("its stream is cut off, and its connection stays"),
        arguments: [
            (1, SlowOne.leads), (2, .leads), (1, .joins), (2, .joins), (2, .reads), (2, .isOneOfTwo), (1, .wantsRange),
            (2, .speaksHTTP10),
        ])
    func `a reader that holds up others for long is cut off, and the others get everything`(
        _ workers: Int, _ slowOne: SlowOne
    ) throws {
        try scenario(.workers(workers), .maxObjectSize(100_000), .rangeMisses("part"), .accessLog) { origin, proxy in
            let start = Gate()
            origin.on("/big") { _ in [.gate(start)] + slowOne.response }
            let slowOnes = Array(repeating: slowOne.visitor(of: proxy), count: slowOne.count)
            let others = Array(repeating: proxy.visitor("/big", slowOne.fields), count: 2)
            let (first, then) = slowOne == .leads ? (slowOnes, others) : (others, slowOnes)
            let leading = Crowd(at: proxy.endpoint, first)
            try proxy.joined(first.count)
            let joining = Crowd(at: proxy.endpoint, then)
            try proxy.joined(first.count + then.count)
            start.open()

            let (slow, fast) = slowOne == .leads ? (leading, joining) : (joining, leading)
            #expect(fast.finished().allSatisfy { $0.isWhole(length) })
            #expect(origin.count("/big") == 1)
            try eventually("who holds them up is cut off") { try proxy.metric(.openClients) == 0 }
            try eventually("all is logged") { try proxy.accessLog.count == 2 + slowOne.count }
            let cut = try proxy.accessLog.filter { $0["detail"]?.string == "held-up-others" }
            #expect(cut.count == slowOne.count && cut.allSatisfy { $0["aborted"] == .bool(true) })
            guard slowOne.seesEnd else { return }
            #expect(slow.finished().allSatisfy { $0.ending == .reset && $0.body.isIntact }, "never passed off as whole")
        }
    }

    enum Reason: CaseIterable, Sendable {
        case isAlone, restLeft, isKeptWhole, operatorAllows
    }

    @Test(.overHTTP1("another's stream is cut off, and its connection stays"), arguments: Reason.allCases)
    func `a reader that holds up no other may read at any rate`(_ reason: Reason) throws {
        let rate = Setting.other(
            section: "coalescing", key: "min-shared-rate", value: reason == .operatorAllows ? "none" : "1MiB")
        let limit = Setting.maxObjectSize(reason == .isKeptWhole ? 2 * length : 100_000)
        try scenario(rate, limit) { origin, proxy in
            let start = Gate()
            origin.on("/big") { _ in [.gate(start), .answer(200, "Cache-Control: max-age=60", pattern: length)] }
            let slow = proxy.crowd(1, get: "/big", pace: trickle)
            try proxy.joined(1)
            let fast = proxy.crowd(reason == .isAlone ? 0 : 1, get: "/big")
            try proxy.joined(1 + fast.answers.count)
            start.open()
            try eventually("they have some of it") {
                (slow.answers + fast.answers).allSatisfy { $0.body.length > 0 }
            }
            if reason == .restLeft { fast.leave(0) }
            // Of another proxy, where one begins to hold up others only now.
            try `a reader that holds up others for long is cut off, and the others get everything`(1, .leads)
            let taken = slow.answers[0].body.length
            try eventually("it is still served, a few pieces on") { slow.answers[0].body.length >= taken + 4 * 2_048 }
            #expect(slow.answers[0].ending == .pending)
            if reason == .isKeptWhole { #expect(fast.finished()[0].isWhole(length)) }
            #expect(slow.answers[0].body.isIntact)
        }
    }
}
