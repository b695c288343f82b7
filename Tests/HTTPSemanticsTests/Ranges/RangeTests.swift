import Bytes
import HTTPSemantics
import Testing

/// RFC 9110 §14, §15.3.7, RFC 9111 §3.3, §3.4: parts of a representation.
struct RangeTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let clause: String, range: String, length: Int, expected: RangeSelection

        init(_ clause: String, _ range: String, of length: Int = 1_000, _ expected: RangeSelection) {
            (self.clause, self.range, self.length, self.expected) = (clause, range, length, expected)
        }

        var testDescription: String { "\(clause): \(range) of \(length)" }
    }

    static let cases: [Case] = [
        Case("§14.1.2 the first bytes", "bytes=0-499", .single(0..<500)),
        Case("§14.1.2 some in the middle", "bytes=500-599", .single(500..<600)),
        Case("§14.1.2 one byte", "bytes=0-0", .single(0..<1)),
        Case("§14.1.2 the last byte", "bytes=999-999", .single(999..<1_000)),
        Case("§14.1.2 without an end", "bytes=900-", .single(900..<1_000)),
        Case("§14.1.2 beyond the end", "bytes=900-5000", .single(900..<1_000)),
        Case("§14.1.2 the last 100", "bytes=-100", .single(900..<1_000)),
        Case("§14.1.2 the last of more than there is", "bytes=-5000", .single(0..<1_000)),
        Case("§14.1.2 all of it", "bytes=0-", .single(0..<1_000)),
        Case("§14.1 the unit in any case", "BYTES=0-1", .single(0..<2)),
        Case("§14.1.2 white space in the list", "bytes= 0-1 , 500-501", .multiple([0..<2, 500..<502])),
        Case("§14.1.2 empty members", "bytes=,0-1,", .single(0..<2)),
        Case("§14.1.2 behind the end", "bytes=1000-", .unsatisfiable),
        Case("§14.1.2 far behind it", "bytes=5000-6000", .unsatisfiable),
        Case("§14.1.2 the last none", "bytes=-0", .unsatisfiable),
        Case("§14.1.2 more digits than fit", "bytes=99999999999999999999999-", .unsatisfiable),
        Case("§14.1.2 an end of more digits than fit", "bytes=900-99999999999999999999999", .single(900..<1_000)),
        Case("§14.1.2 a suffix of more digits than fit", "bytes=-99999999999999999999999", .single(0..<1_000)),
        Case("§14.2 one of two is satisfiable", "bytes=2000-,0-1", .single(0..<2)),
        Case("§14.2 none of two is", "bytes=2000-,3000-", .unsatisfiable),
        Case("§15.3.7.2 first and last", "bytes=0-0,-1", .multiple([0..<1, 999..<1_000])),
        Case("§15.3.7.2 three", "bytes=0-9,300-309,-10", .multiple([0..<10, 300..<310, 990..<1_000])),
        Case("§15.3.7.2 in the order asked for", "bytes=-10,0-9", .multiple([990..<1_000, 0..<10])),
        Case("§15.3.7.2 adjacent ones are one", "bytes=500-600,601-699", .single(500..<700)),
        Case("§15.3.7.2 overlapping ones are one", "bytes=500-700,601-799", .single(500..<800)),
        Case("§15.3.7.2 near ones are one", "bytes=0-9,50-59", .single(0..<60)),
        Case("§15.3.7.2 a third joins two", "bytes=0-99,300-399,100-299", .single(0..<400)),
        Case("§15.3.7.2 joined where the first stood", "bytes=500-509,0-9,510-519", .multiple([500..<520, 0..<10])),
        Case("§14.2 too many overlap", "bytes=0-,0-,0-,0-,0-", .whole),
        Case(
            "§15.3.7.2 at the end of the largest there is", "bytes=9223372036854775800-,0-0", of: .max,
            .multiple([9_223_372_036_854_775_800 ..< .max, 0..<1])),
        Case(
            "§15.3.7.2 the same in another order", "bytes=0-0,9223372036854775800-", of: .max,
            .multiple([0..<1, 9_223_372_036_854_775_800 ..< .max])),
        Case("§14.2 of nothing", "bytes=0-", of: 0, .whole),
        Case("§14.2 a suffix of nothing", "bytes=-5", of: 0, .whole),
        Case("§14.1.1 the end before the start", "bytes=500-499", .whole),
        Case("§14.1.1 one of two has it", "bytes=0-1,500-499", .whole),
        Case("§14.2 another unit", "lines=0-1", .whole),
        Case("§14.1.1 no unit", "0-1", .whole),
        Case("§14.1.1 no range", "bytes=", .whole),
        Case("§14.1.1 no dash", "bytes=5", .whole),
        Case("§14.1.1 only a dash", "bytes=-", .whole),
        Case("§14.1.1 letters", "bytes=a-b", .whole),
        Case("§14.1.1 a sign", "bytes=+0-1", .whole),
        Case("§14.1.1 two dashes", "bytes=0-1-2", .whole),
        Case("§14.1.1 white space inside", "bytes=0 - 1", .whole),
        Case("§14.1.1 white space before the sign", "bytes =0-1", .whole),
        Case(
            "§14.2 more ranges than allowed", "bytes=" + Array(repeating: "0-0", count: 33).joined(separator: ","),
            .whole),
    ]

    @Test func `as many ranges as permitted are served, and with one more the field is ignored`() {
        func ranges(_ count: Int) -> String {
            "Range: bytes=" + (0..<count).map { "\($0 * 200)-\($0 * 200)" }.joined(separator: ",")
        }
        let allowed = head(ranges(RangeRequest.maxSpecs)), more = head(ranges(RangeRequest.maxSpecs + 1))
        let (first, second) = (RangeRequest(allowed.view, method: .get), RangeRequest(more.view, method: .get))
        #expect(
            first?.resolve(length: 10_000) == .multiple((0..<RangeRequest.maxSpecs).map { $0 * 200..<$0 * 200 + 1 }))
        #expect(second == nil)
    }

    @Test(arguments: cases)
    func `a valid Range selects its bytes, any other the full response`(row: Case) {
        let block = head("Range: \(row.range)")
        let range = RangeRequest(block.view, method: .get)
        #expect((range?.resolve(length: row.length) ?? .whole) == row.expected)
    }

    @Test(arguments: cases)
    func `the short parser of a single range agrees with the general one, or declines`(row: Case) {
        let block = head("Range: \(row.range)")
        let range = RangeRequest.single(block.view, length: row.length)
        if let range { #expect(row.expected == .single(range)) }
        if case .single = row.expected, !row.range.contains(",") { #expect(range != nil) }
    }

    @Test(arguments: HTTPSemantics.Method.allCases.filter { $0 != .get })
    func `only GET has ranges`(method: HTTPSemantics.Method) {
        // RFC 9110 §14.2
        let block = head("Range: bytes=0-1")
        let range = RangeRequest(block.view, method: method)
        #expect(range == nil)
    }

    @Test func `two Range lines are ignored`() {
        let block = head("Range: bytes=0-1\nRange: bytes=2-3")
        let range = RangeRequest(block.view, method: .get)
        #expect(range == nil)
    }

    static let contentRanges: [Row<ContentRange?>] = [
        Row("RFC 9110 §14.4", "Content-Range: bytes 0-499/1234", .part(0..<500, of: 1_234)),
        Row("RFC 9110 §14.4 the last bytes", "Content-Range: bytes 734-1233/1234", .part(734..<1_234, of: 1_234)),
        Row("RFC 9110 §14.4 of an unknown length", "Content-Range: bytes 0-499/*", .part(0..<500, of: nil)),
        Row("RFC 9110 §14.4 unsatisfied", "Content-Range: bytes */1234", .unsatisfied(length: 1_234)),
        Row("RFC 9110 §14.4 the end before the start", "Content-Range: bytes 5-4/10", nil),
        Row("RFC 9110 §14.4 longer than the whole", "Content-Range: bytes 0-10/10", nil),
        Row("RFC 9110 §14.4 nothing known", "Content-Range: bytes */*", nil),
        Row(
            "RFC 9110 §14.4 the largest whole", "Content-Range: bytes 0-9/9223372036854775807",
            .part(0..<10, of: 9_223_372_036_854_775_807)),
        Row("RFC 9110 §14.4 a larger one", "Content-Range: bytes 0-9/9223372036854775808", nil),
        Row("RFC 9110 §14.4 one of many digits", "Content-Range: bytes 0-9/99999999999999999999", nil),
        Row("RFC 9110 §14.4 an end without a next", "Content-Range: bytes 0-9223372036854775807/*", nil),
        Row("RFC 9110 §14.4 another unit", "Content-Range: lines 0-1/2", nil),
        Row("RFC 9110 §14.4 no length", "Content-Range: bytes 0-1", nil),
        Row("RFC 9110 §14.4 letters", "Content-Range: bytes a-b/c", nil),
        Row("RFC 9110 §14.4 the syntax of Range", "Content-Range: bytes=0-1/2", nil),
        Row("RFC 9110 §14.4 two", "Content-Range: bytes 0-1/4\nContent-Range: bytes 2-3/4", nil),
        Row("RFC 9110 §14.4 none", "", nil),
    ]

    @Test(arguments: contentRanges)
    func `Content-Range is parsed strictly and written as parsed`(row: Row<ContentRange?>) {
        let block = head(row.fields)
        let range = ContentRange(block.view)
        #expect(range == row.expected)
        if let range { #expect(row.fields == "Content-Range: " + written { range.write(to: $0) }) }
    }

    @Test func `several parts are framed with the right length`() {
        // RFC 9110 §14.6, §15.3.7.2
        let parts = MultipartRanges(
            [0..<5, 10..<12], of: 20, boundary: ByteSlice("XX"), contentType: ByteSlice("text/plain"))
        #expect(written { parts.writeContentType(to: $0) } == "multipart/byteranges; boundary=XX")
        let body = written { buffer in
            parts.writePartHead(0, to: buffer)
            buffer.append("hello")
            parts.writePartHead(1, to: buffer)
            buffer.append("ab")
            parts.writeEnd(to: buffer)
        }
        #expect(
            body == """
                \r\n--XX\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-4/20\r\n\r\nhello\
                \r\n--XX\r\nContent-Type: text/plain\r\nContent-Range: bytes 10-11/20\r\n\r\nab\r\n--XX--\r\n
                """)
        #expect(parts.contentLength == body.utf8.count)
    }

    @Test func `parts of a response without a media type have none`() {
        let parts = MultipartRanges([0..<1], of: 2, boundary: ByteSlice("X"), contentType: nil)
        #expect(written { parts.writePartHead(0, to: $0) } == "\r\n--X\r\nContent-Range: bytes 0-0/2\r\n\r\n")
    }

    static let combinations: [(String, [Range<Int>], length: Int?, expected: [Range<Int>], isComplete: Bool)] = [
        ("§3.4 one part", [0..<10], 30, [0..<10], false),
        ("§3.4 two apart", [0..<10, 20..<30], 30, [0..<10, 20..<30], false),
        ("§3.4 in another order", [20..<30, 0..<10], 30, [0..<10, 20..<30], false),
        ("§3.4 adjacent", [0..<10, 10..<20], 30, [0..<20], false),
        ("§3.4 overlapping", [0..<15, 10..<20], 30, [0..<20], false),
        ("§3.4 one inside another", [0..<20, 5..<10], 30, [0..<20], false),
        ("§3.4 closing a gap", [0..<10, 20..<30, 8..<22], 30, [0..<30], true),
        ("RFC 9110 §15.3.7.3 the whole", [0..<10, 10..<30], 30, [0..<30], true),
        ("§3.4 of an unknown length it is never whole", [0..<10, 10..<30], nil, [0..<30], false),
    ]

    @Test(arguments: combinations)
    func `parts combine`(clause: String, ranges: [Range<Int>], length: Int?, expected: [Range<Int>], isComplete: Bool) {
        var content = PartialContent(ranges[0], of: length)
        for range in ranges.dropFirst() {
            let fits = content.add(PartialContent(range, of: length))
            #expect(fits)
        }
        #expect(content.ranges == expected)
        #expect(content.isComplete == isComplete)
    }

    @Test func `contradictory parts do not combine`() {
        var content = PartialContent(0..<10, of: 30)
        let fits = content.add(PartialContent(10..<20, of: 31)) || content.add(PartialContent(20..<40, of: nil))
        #expect(!fits)
        #expect(content == PartialContent(0..<10, of: 30))
    }

    @Test func `a later part may give the length`() {
        var content = PartialContent(0..<10, of: nil)
        let fits = content.add(PartialContent(10..<20, of: 20))
        #expect(fits)
        #expect(content.isComplete)
    }

    static let gaps: [(Range<Int>, missing: [Range<Int>])] = [
        (0..<5, []), (0..<10, []), (5..<15, [10..<15]), (12..<18, [12..<18]), (0..<30, [10..<20]), (15..<25, [15..<20]),
        (20..<30, []), (25..<40, [30..<40]), (0..<40, [10..<20, 30..<40]), (50..<60, [50..<60]),
    ]

    @Test(arguments: gaps)
    func `only missing bytes are fetched`(range: Range<Int>, missing: [Range<Int>]) {
        // RFC 9111 §3.3
        var content = PartialContent(0..<10, of: 100)
        let fits = content.add(PartialContent(20..<30, of: 100))
        #expect(fits)
        #expect(content.missing(in: range) == missing)
        #expect(content.contains(range) == missing.isEmpty)
    }

    static let tags: [(String, String, Bool)] = [
        ("ETag: \"a\"", "ETag: \"a\"", true), ("ETag: \"a\"", "ETag: \"b\"", false),
        ("ETag: W/\"a\"", "ETag: W/\"a\"", false),
        ("ETag: \"a\"", "ETag: W/\"a\"", false), ("ETag: \"a\"", "", false), ("", "", false),
        ("Last-Modified: {-9}", "Last-Modified: {-9}", false),
    ]

    @Test(arguments: tags)
    func `parts combine only under one strong tag`(stored: String, new: String, expected: Bool) {
        // RFC 9111 §3.4
        let left = head(stored), right = head(new)
        let mayCombine = PartialContent.mayCombine(left.view, right.view)
        #expect(mayCombine == expected)
    }
}
