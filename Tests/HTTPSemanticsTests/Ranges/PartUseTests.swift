import Bytes
import HTTPSemantics
import Testing

/// RFC 9111 §3.3, §3.4: what stored parts are good for, and what may be taken for one.
struct PartUseTests {
    struct Use: Sendable, CustomTestStringConvertible {
        let clause: String, request: String, runs: [Range<Int>], length: Int?, expected: PartUse

        init(_ clause: String, _ request: String, _ runs: [Range<Int>], of length: Int? = 100, _ expected: PartUse) {
            (self.clause, self.request, self.runs, self.length, self.expected) = (
                clause, request, runs, length, expected
            )
        }

        var testDescription: String {
            "\(clause): \(request.isEmpty ? "the whole" : request) of \(runs) in \(length.map(String.init) ?? "*")"
        }
    }

    static let uses: [Use] = [
        Use("§3.3 the same range", "Range: bytes=0-9", [0..<10], .answers),
        Use("§3.3 inside it", "Range: bytes=3-5", [0..<10], .answers),
        Use("§3.3 over two that touch", "Range: bytes=5-14", [0..<10, 10..<20], .answers),
        Use("§3.3 one byte more", "Range: bytes=0-10", [0..<10], .needs(.between(10, 10))),
        Use("§3.3 one byte before", "Range: bytes=9-15", [10..<20], .needs(.between(9, 9))),
        Use("§3.3 the hull of two gaps", "Range: bytes=0-39", [10..<20], .needs(.between(0, 39))),
        Use("§3.3 a gap between two", "Range: bytes=0-29", [0..<10, 20..<30], .needs(.between(10, 19))),
        Use("§3.3 to the end", "Range: bytes=5-", [0..<10], .needs(.from(10))),
        Use("§3.3 past the end", "Range: bytes=5-999", [0..<10], .needs(.from(10))),
        Use("§3.3 a suffix that is there", "Range: bytes=-5", [90..<100], .answers),
        Use("§3.3 a longer suffix", "Range: bytes=-15", [90..<100], .needs(.between(85, 89))),
        Use("§3.3 the whole", "", [0..<10], .needs(.from(10))),
        Use("§3.3 the whole but for its beginning", "", [10..<100], .needs(.between(0, 9))),
        Use("§3.3 the whole but for both ends", "", [10..<20], .needs(.from(0))),
        Use("RFC 9110 §14.1.1 a range that is none wants the whole", "Range: bytes=9-0", [0..<10], .needs(.from(10))),
        Use("RFC 9110 §15.5.17 beyond the end", "Range: bytes=100-", [0..<10], .answers),
        Use("RFC 9110 §14.2 several that are there", "Range: bytes=0-1,91-92", [0..<10, 90..<100], .answers),
        Use("RFC 9110 §14.2 several, one is not", "Range: bytes=0-1,500-501", [0..<10], of: 1_000, .nothing),
        Use("RFC 9110 §13.1.5 If-Range holds", "Range: bytes=3-5\nIf-Range: \"a\"", [0..<10], .answers),
        Use("RFC 9110 §13.1.5 If-Range does not", "Range: bytes=3-5\nIf-Range: \"b\"", [0..<10], .needs(.from(10))),
        Use("§3.3 inside, the length unknown", "Range: bytes=3-5", [0..<10], of: nil, .answers),
        Use(
            "§3.3 past what is there, the length unknown", "Range: bytes=5-14", [0..<10], of: nil,
            .needs(.between(10, 14))),
        Use("§3.3 to an end that nobody knows", "Range: bytes=5-", [0..<10], of: nil, .needs(.from(10))),
        Use("§3.3 the whole, the length unknown", "", [0..<10], of: nil, .needs(.from(10))),
        Use("§3.3 a suffix, the length unknown", "Range: bytes=-5", [0..<10], of: nil, .needs(.last(5))),
        Use("§3.3 several, the length unknown", "Range: bytes=0-1,4-5", [0..<10], of: nil, .nothing),
        Use(
            "RFC 9110 §14.1.2 more digits than fit", "Range: bytes=5-99999999999999999999", [0..<10], of: nil,
            .needs(.from(10))),
    ]

    @Test(arguments: uses)
    func `stored parts serve the bytes that they hold, and the rest is requested`(row: Use) {
        let (request, stored) = (head(row.request), head("ETag: \"a\""))
        let facts = ResponseFacts(
            status: .ok, fields: stored.view, requestTime: arrival, responseTime: arrival, policy: CachingPolicy())
        let use = PartUse(
            request.view, of: PartialContent(row.runs, of: row.length), stored: stored.view, facts: facts, maxRanges: 16
        )
        #expect(use == row.expected)
    }

    static let requests: [Row<ByteRangeSpec?>] = [
        Row("one", "Range: bytes=1-2", .between(1, 2)), Row("open", "Range: bytes=1-", .from(1)),
        Row("a suffix", "Range: bytes=-2", .last(2)),
        Row("two", "Range: bytes=1-2,4-5", nil), Row("conditional", "Range: bytes=1-2\nIf-Range: \"a\"", nil),
        Row("none", "", nil),
    ]

    @Test(arguments: requests)
    func `only a single range without a condition is requested unchanged`(row: Row<ByteRangeSpec?>) {
        let request = head(row.fields)
        let range = RangeRequest.only(request.view, method: .get)
        let other = RangeRequest.only(request.view, method: .head)
        #expect(range == row.expected && other == nil)
    }

    struct Received: Sendable, CustomTestStringConvertible {
        let clause: String, fields: String, asked: ByteRangeSpec, contentLength: Int?, expected: Range<Int>?

        init(_ clause: String, _ fields: String, _ asked: ByteRangeSpec, content: Int? = nil, _ expected: Range<Int>?) {
            self.clause = clause
            self.fields = fields
            self.asked = asked
            contentLength = content
            self.expected = expected
        }

        var testDescription: String { clause }
    }

    static let tagged = "ETag: \"a\"\n"
    static let received: [Received] = [
        Received("what was asked", tagged + "Content-Range: bytes 5-9/20", .between(5, 9), content: 5, 5..<10),
        Received("more than was asked", tagged + "Content-Range: bytes 0-19/20", .between(5, 9), 0..<20),
        Received("less, at the end of the whole", tagged + "Content-Range: bytes 5-9/10", .between(5, 99), 5..<10),
        Received("less", tagged + "Content-Range: bytes 5-8/20", .between(5, 9), nil),
        Received("less, and the length unknown", tagged + "Content-Range: bytes 5-8/*", .between(5, 9), nil),
        Received("the length unknown", tagged + "Content-Range: bytes 5-9/*", .between(5, 9), 5..<10),
        Received("a byte further on", tagged + "Content-Range: bytes 6-10/20", .between(5, 9), nil),
        Received("all behind", tagged + "Content-Range: bytes 5-19/20", .from(5), 5..<20),
        Received("not all behind", tagged + "Content-Range: bytes 5-18/20", .from(5), nil),
        Received("all behind, where no end is known", tagged + "Content-Range: bytes 5-18/*", .from(5), nil),
        Received("the last", tagged + "Content-Range: bytes 15-19/20", .last(5), 15..<20),
        Received("fewer of the last", tagged + "Content-Range: bytes 16-19/20", .last(5), nil),
        Received("the last of less", tagged + "Content-Range: bytes 0-3/4", .last(5), 0..<4),
        Received("the last of what nobody knows", tagged + "Content-Range: bytes 15-19/*", .last(5), nil),
        Received("content of another length", tagged + "Content-Range: bytes 5-9/20", .between(5, 9), content: 6, nil),
        Received("a weak tag", "ETag: W/\"a\"\nContent-Range: bytes 5-9/20", .between(5, 9), 5..<10),
        Received("a date only", "Last-Modified: {-99999}\nContent-Range: bytes 5-9/20", .between(5, 9), 5..<10),
        Received("no validator", "Content-Range: bytes 5-9/20", .between(5, 9), 5..<10),
        Received("no Content-Range", tagged, .between(5, 9), nil),
        Received(
            "two of them", tagged + "Content-Range: bytes 5-9/20\nContent-Range: bytes 5-9/20", .between(5, 9), nil),
        Received(
            "several parts", tagged + "Content-Range: bytes 5-9/20\nContent-Type: Multipart/ByteRanges; boundary=x",
            .between(5, 9), nil),
        Received("unsatisfied", tagged + "Content-Range: bytes */20", .between(5, 9), nil),
    ]

    @Test(arguments: received)
    func `a response is accepted as a part only if its fields are consistent`(row: Received) {
        // RFC 9110 §15.3.7: the recipient must look at what was sent.
        let block = head(row.fields)
        let part = ReceivedPart(block.view, status: .partialContent, contentLength: row.contentLength, asked: row.asked)
        let whole = ReceivedPart(block.view, status: .ok, contentLength: row.contentLength, asked: row.asked)
        #expect(part?.range == row.expected && whole == nil)
    }

    static let relations: [(String, String, Bool)] = [
        ("ETag: \"a\"", "bytes 10-19/100", true), ("ETag: \"a\"", "bytes 10-19/*", true),
        ("ETag: \"b\"", "bytes 10-19/100", false), ("ETag: W/\"a\"", "bytes 10-19/100", false),
        ("X: y", "bytes 10-19/100", false),
        ("ETag: \"a\"", "bytes 10-19/99", false), ("ETag: \"a\"", "bytes 10-199/200", false),
    ]

    @Test(arguments: relations)
    func `a part belongs to stored parts with the same tag and length`(tag: String, range: String, belongs: Bool) throws
    {
        // RFC 9111 §3.4
        let (new, stored) = (head("\(tag)\nContent-Range: \(range)"), head("ETag: \"a\""))
        let received = ReceivedPart(new.view, status: .partialContent, contentLength: nil, asked: .between(10, 19))
        let part = try #require(received)
        let isSame = part.belongs(to: PartialContent([0..<10], of: 100), fields: new.view, stored: stored.view)
        #expect(isSame == belongs)
    }

    static let beginnings: [(range: ByteRangeSpec, other: ByteRangeSpec, expected: Bool)] = [
        (.between(10, 99), .between(10, 19), true), (.between(10, 99), .between(15, 18), true),
        (.between(10, 99), .between(15, 20), false), (.between(10, 99), .between(10, 99), false),
        (.between(10, 12), .between(10, 12), true), (.between(10, 12), .between(12, 13), false),
        (.between(10, 99), .between(9, 15), false), (.between(10, 99), .from(15), false),
        (.from(10), .between(15, 19), true), (.from(10), .between(15, 20), false), (.from(10), .from(10), false),
        (.from(10), .last(5), false), (.last(50), .last(5), false), (.last(50), .between(0, 1), false),
    ]

    @Test(arguments: beginnings)
    func `a range is found in a larger one with the same beginning`(
        row: (range: ByteRangeSpec, other: ByteRangeSpec, expected: Bool)
    ) {
        #expect(row.range.begins(with: row.other, inFirst: 10) == row.expected)
    }
}
