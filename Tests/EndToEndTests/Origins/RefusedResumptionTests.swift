import Testing

/// What cannot go on is cut for everyone: nothing is mixed, and nothing of it is stored.
@Suite(.scenario) struct RefusedResumptionTests {
    private static let length = 900_000
    private static let cut = 300_000
    private static let fields = [
        "Cache-Control: max-age=600", "ETag: \"v1\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
        "Content-Type: text/plain",
    ]

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// What answers the request for the rest.
        let steps: [Step]

        init(_ name: String, _ steps: Step...) { (testDescription, self.steps) = (name, steps) }

        /// A 206 with all of the rest.
        init(
            _ name: String, _ change: (String, String) = ("", ""), range: String = "300000-899999/900000",
            count: Int = 600_000, more: [String] = []
        ) {
            let fields = RefusedResumptionTests.fields.map { $0.replacing(change.0, with: change.1) } + more
            self.init(
                name, .head(206, fields + ["Content-Length: \(count)", "Content-Range: bytes \(range)"]),
                .pattern(300_000..<300_000 + count, seed: 1))
        }
    }

    static let answers: [Row] = [
        Row("another tag", ("v1", "v2")),
        Row("a weak tag", ("\"v1\"", "W/\"v1\"")),
        Row("another date under the same tag and length", ("08:49:37", "08:49:38")),
        Row("another type", ("plain", "html")),
        Row("another coding", more: ["Content-Encoding: gzip"]),
        Row("another length", range: "300000-899999/900001"),
        Row("no total", range: "300000-899999/*"),
        Row("a byte too late", range: "300001-899999/900000", count: 599_999),
        Row("a byte too early", range: "299999-899999/900000", count: 600_001),
        Row("more than its range", range: "300000-899998/900000"),
        Row("less than its range", count: 599_999),
        Row("several parts", ("text/plain", "multipart/byteranges; boundary=x")),
        Row("two ranges", more: ["Content-Range: bytes 300000-899999/900000"]),
        Row(
            "more in chunks than its range",
            .head(206, fields + ["Transfer-Encoding: chunked", "Content-Range: bytes 300000-300003/900000"]),
            .chunk("01234")),
        Row(
            "less in chunks than its range",
            .head(206, fields + ["Transfer-Encoding: chunked", "Content-Range: bytes 300000-300003/900000"]),
            .lastChunk()),
        Row(
            "malformed chunks",
            .head(206, fields + ["Transfer-Encoding: chunked", "Content-Range: bytes 300000-899999/900000"]),
            .raw("nonsense\r\n")),
        Row(
            "200 with the whole", .head(200, fields + ["Content-Length: 900000"]),
            .pattern(0..<900_000)),
        Row(
            "200 with another whole", .head(200, ["ETag: \"v2\"", "Content-Length: 900000"]),
            .pattern(0..<900_000, seed: 1)),
        Row("404", .answer(404, body: "gone")),
        Row("416", .answer(416, "Content-Range: bytes */300000")),
        Row("304", .answer(304, "ETag: \"v1\"")),
        Row("204", .head(204)),
        Row("101", .interim(101, "Upgrade: x", "Connection: upgrade")),
        Row("no HTTP", .raw("nonsense\r\n\r\n")),
    ]

    @Test(arguments: answers, [false, true])
    func `everyone is cut and nothing is stored after an answer that is not the rest`(row: Row, isChunked: Bool) throws
    {
        // What was never told a length can have any.
        if isChunked, row.testDescription == "another length" { return }
        try scenario(.workers(2)) { origin, proxy in
            let rest = Gate()
            let file = BreakingFile(length: Self.length, cuts: [Self.cut], isChunked: isChunked, fields: Self.fields)
            origin.on("/x") { $0.number == 2 ? [.gate(rest)] + row.steps : file.steps($0) }
            let crowd = proxy.crowd(10, get: "/x")
            try eventually("all have the beginning") { crowd.answers.allSatisfy { $0.body.length == Self.cut } }
            let late = proxy.crowd(2, get: "/x")
            try eventually("and so have they") { late.answers.allSatisfy { $0.body.length == Self.cut } }
            rest.open()
            for answer in crowd.finished() + late.finished() {
                #expect(answer.ending == .cutOff || answer.ending == .reset)
                #expect(answer.body.length == Self.cut && answer.body.isIntact)
            }
            #expect(origin.requests("/x").map { $0["range"] } == [nil, "bytes=300000-"])
            // No part of it either.
            #expect(try proxy.get("/x").isWhole(Self.length))
            #expect(origin.requests("/x").map { $0["range"] } == [nil, "bytes=300000-", nil])
            #expect(try proxy.get("/x").cacheStatus.contains("hit"))
        }
    }

    @Test func `a second rest of another length is not taken`() throws {
        try scenario(.workers(2)) { origin, proxy in
            let file = BreakingFile(length: Self.length, cuts: [Self.cut, 500_000], isChunked: true)
            let longer = BreakingFile(length: Self.length + 1)
            let rest = Gate()
            origin.on("/x") { request in
                switch request.number {
                case 2: [.gate(rest)] + file.steps(request)
                case 3: longer.steps(request)
                default: file.steps(request)
                }
            }
            let crowd = proxy.crowd(5, get: "/x")
            try eventually("all have the beginning") { crowd.answers.allSatisfy { $0.body.length == Self.cut } }
            rest.open()
            let answers = crowd.finished()
            #expect(answers.allSatisfy { !$0.isClean && $0.body.length == 500_000 && $0.body.isIntact })
            #expect(origin.requests("/x").map { $0["range"] } == [nil, "bytes=300000-", "bytes=500000-"])
            let again = try proxy.get("/x")
            #expect(again.isWhole(Self.length))
        }
    }

    struct First: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var method = "GET"
        var request: [String] = []
        var status = 200
        var fields: [String] = RefusedResumptionTests.fields
        var settings: [Setting] = []
    }

    static let firsts: [First] = [
        First(testDescription: "no tag", fields: ["Cache-Control: max-age=600", fields[2]]),
        First(testDescription: "a weak tag", fields: ["Cache-Control: max-age=600", "ETag: W/\"v1\""]),
        First(testDescription: "no ranges", fields: fields + ["Accept-Ranges: none"]),
        First(testDescription: "a POST", method: "POST"),
        First(testDescription: "another status", status: 404),
        First(
            testDescription: "an unasked part", status: 206, fields: fields + ["Content-Range: bytes 0-899999/900000"]),
        First(
            testDescription: "a pass with a range", request: ["Authorization: Basic eDp5", "Range: bytes=0-899999"],
            status: 206,
            fields: ["Cache-Control: private", "ETag: \"v1\"", "Content-Range: bytes 0-899999/900000"]),
        First(testDescription: "resume: 0", settings: [.resume(0)]),
    ]

    @Test(arguments: firsts)
    func `some responses are cut at once`(first: First) throws {
        try scenario(settings: first.settings) { origin, proxy in
            origin.on("/x") { _ in
                [
                    .requestBody, .head(first.status, first.fields + ["Content-Length: 900000"]), .pattern(0..<300_000),
                    .close,
                ]
            }
            let answer = try proxy.send(
                first.method, "/x", first.request, body: first.method == "POST" ? "x" : nil)
            #expect(!answer.isClean && answer.body.length == 300_000 && answer.body.isIntact)
            #expect(origin.count("/x") == 1)
        }
    }

    /// They have no content that could break off.
    @Test func `HEAD and 204 are complete with their heads`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/head") { _ in [.head(200, Self.fields + ["Content-Length: 900000"]), .close] }
            origin.on("/none") { _ in [.head(204, Self.fields), .close] }
            let (head, none) = (try proxy.send("HEAD", "/head"), try proxy.get("/none"))
            #expect(head.isClean && head.status == 200 && none.isClean && none.status == 204)
            #expect(origin.count("/head") == 1 && origin.count("/none") == 1)
        }
    }
}
