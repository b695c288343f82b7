import Bytes
import HTTPSemantics
import Testing

/// What may go on after it has broken off, and what is taken for its rest (RFC 9110 §13.1.5, §15.3.7).
struct ResumableContentTests {
    private static let first = "ETag: \"a\"\nLast-Modified: {-99}\nContent-Type: text/plain\nContent-Encoding: gzip"

    static let heads: [Row<Bool>] = [
        Row("a strong tag", "ETag: \"a\"", true),
        Row("with ranges", "ETag: \"a\"\nAccept-Ranges: bytes", true),
        Row("§14.3 none", "ETag: \"a\"\nAccept-Ranges: none", false),
        Row("§14.3 none, in any case, in any line", "ETag: \"a\"\nAccept-Ranges: bytes\nAccept-Ranges: x, NONE", false),
        Row("§13.1.5 a weak tag", "ETag: W/\"a\"", false),
        Row("§13.1.5 a date only", "Last-Modified: {-99999}", false),
        Row("two tags", "ETag: \"a\"\nETag: \"a\"", false),
        Row("no tag", "ETag: a", false),
        Row("a range that nobody requested", "ETag: \"a\"\nContent-Range: bytes 0-9/20", false),
        Row("nothing", "", false),
    ]

    @Test(arguments: heads)
    func `only a whole under a strong tag can be resumed`(row: Row<Bool>) {
        let block = head(row.fields)
        let isResumable = ResumableContent(block.view, status: .ok, contentLength: 20) != nil
        #expect(isResumable == row.expected)
        for status in [Status.partialContent, .noContent, .notFound, .notModified] {
            let other = ResumableContent(block.view, status: status, contentLength: 20)
            #expect(other == nil)
        }
    }

    struct Answer: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let fields: String, status: Status, contentLength: Int?, known: Int?, end: Int?

        /// - Parameters:
        ///   - contentLength: of the response; `nil`: not announced.
        ///   - known: the length of the whole, as the first response announced it.
        ///   - end: what is to come out.
        init(
            _ name: String, _ range: String, status: Status = .partialContent, content contentLength: Int? = nil,
            of known: Int? = 20, fields: String = first, _ end: Int?
        ) {
            testDescription = name
            self.fields = "\(fields)\nContent-Range: \(range)"
            (self.status, self.contentLength, self.known, self.end) = (status, contentLength, known, end)
        }
    }

    /// Five bytes have come.
    static let answers: [Answer] = [
        Answer("the rest", "bytes 5-19/20", content: 15, 20),
        Answer("the rest, in chunks", "bytes 5-19/20", 20),
        Answer("the beginning of the rest", "bytes 5-9/20", content: 5, 10),
        Answer("the rest of what was never told a length", "bytes 5-29/30", content: 25, of: nil, 30),
        Answer("the same without a total", "bytes 5-29/*", content: 25, of: nil, nil),
        Answer("no total", "bytes 5-19/*", content: 15, nil),
        Answer("another total", "bytes 5-20/21", content: 16, nil),
        Answer("another total, the range within both", "bytes 5-9/21", content: 5, nil),
        Answer("a byte too late", "bytes 6-19/20", content: 14, nil),
        Answer("a byte too early", "bytes 4-19/20", content: 16, nil),
        Answer("from the beginning", "bytes 0-19/20", content: 20, nil),
        Answer("content longer than its range", "bytes 5-19/20", content: 16, nil),
        Answer("content shorter than its range", "bytes 5-19/20", content: 14, nil),
        Answer("a range past its length", "bytes 5-20/20", content: 16, nil),
        Answer("unsatisfied", "bytes */20", status: Status(416), content: 0, nil),
        Answer("200", "bytes 5-19/20", status: .ok, content: 15, nil),
        Answer("another unit", "pages 5-19/20", content: 15, nil),
        Answer("two ranges", "bytes 5-19/20\nContent-Range: bytes 5-19/20", content: 15, nil),
        Answer(
            "more fields", "bytes 5-19/20", content: 15, fields: "\(first)\nSet-Cookie: a=b\nContent-Language: de", 20),
        Answer("another tag", "bytes 5-19/20", content: 15, fields: first.replacing("\"a\"", with: "\"b\""), nil),
        Answer("a weak tag", "bytes 5-19/20", content: 15, fields: first.replacing("\"a\"", with: "W/\"a\""), nil),
        Answer("another date", "bytes 5-19/20", content: 15, fields: first.replacing("{-99}", with: "{-98}"), nil),
        Answer("another type", "bytes 5-19/20", content: 15, fields: first.replacing("plain", with: "html"), nil),
        Answer("another coding", "bytes 5-19/20", content: 15, fields: first.replacing("gzip", with: "br"), nil),
        Answer("one coding more", "bytes 5-19/20", content: 15, fields: "\(first)\nContent-Encoding: br", nil),
        Answer(
            "no coding any more", "bytes 5-19/20", content: 15,
            fields: first.replacing("\nContent-Encoding: gzip", with: ""),
            nil),
        Answer(
            "§15.3.7 no date any more", "bytes 5-19/20", content: 15,
            fields: first.replacing("\nLast-Modified: {-99}", with: ""), 20),
        Answer(
            "§15.3.7 no type any more", "bytes 5-19/20", content: 15,
            fields: first.replacing("\nContent-Type: text/plain", with: ""), 20),
        Answer(
            "no type any more, another date", "bytes 5-19/20", content: 15,
            fields: first.replacing("\nContent-Type: text/plain", with: "").replacing("{-99}", with: "{-98}"), nil),
        Answer(
            "the type twice", "bytes 5-19/20", content: 15, fields: "\(first)\nContent-Type: text/plain", nil),
        Answer(
            "several parts", "bytes 5-19/20", content: 15,
            fields: first.replacing("text/plain", with: "multipart/byteranges; boundary=x"), nil),
    ]

    @Test(arguments: answers, [true, false])
    func `only the rest of the same representation is taken for the rest`(row: Answer, isFromSameServer: Bool) throws {
        let (first, answer) = (head(Self.first), head(row.fields))
        let made = ResumableContent(first.view, status: .ok, contentLength: row.known)
        var content = try #require(made)
        let end = content.noteRest(
            answer.view, status: row.status, contentLength: row.contentLength, after: 5,
            isFromSameServer: isFromSameServer)
        // Another server must state all that the first one stated.
        let expected = isFromSameServer || !row.testDescription.hasPrefix("§15.3.7") ? row.end : nil
        #expect(end == expected)
        #expect(content.contentLength == (row.known ?? expected))
    }

    @Test func `of several parts nothing is taken, even if the whole had that type`() throws {
        let fields = "ETag: \"a\"\nContent-Type: multipart/byteranges; boundary=x"
        let (first, answer) = (head(fields), head("\(fields)\nContent-Range: bytes 5-19/20"))
        let made = ResumableContent(first.view, status: .ok, contentLength: 20)
        var content = try #require(made)
        let end = content.noteRest(
            answer.view, status: .partialContent, contentLength: 15, after: 5, isFromSameServer: true)
        #expect(end == nil)
    }

    @Test func `a total that was told once does not change`() throws {
        let made = ResumableContent(head("ETag: \"a\"").view, status: .ok, contentLength: nil)
        var content = try #require(made)
        let (answer, other) = (
            head("ETag: \"a\"\nContent-Range: bytes 5-9/30"), head("ETag: \"a\"\nContent-Range: bytes 10-30/31")
        )
        #expect(Self.conditions(content, after: 5) == "Range: bytes=5-\r\nIf-Range: \"a\"\r\n")
        let first = content.noteRest(
            answer.view, status: .partialContent, contentLength: nil, after: 5, isFromSameServer: true)
        let second = content.noteRest(
            other.view, status: .partialContent, contentLength: nil, after: 10, isFromSameServer: true)
        #expect(first == 10 && second == nil && content.contentLength == 30)
        #expect(Self.conditions(content, after: 10) == "Range: bytes=10-\r\nIf-Range: \"a\"\r\n")
    }

    /// The bytes 100 to 119 of 200 or of an unknown length, of which five have come.
    @Test(
        arguments: [
            ("bytes 105-119/200", 200, 20), ("bytes 105-109/200", 200, 10), ("bytes 105-120/200", 200, nil),
            ("bytes 5-19/200", 200, nil), ("bytes 105-119/201", 200, nil), ("bytes 105-119/200", nil, 20),
        ] as [(String, Int?, Int?)])
    func `a part goes on to its own end`(range: String, length: Int?, end: Int?) throws {
        let total = length.map { "\($0)" } ?? "*"
        let (first, answer) = (
            head("ETag: \"a\"\nContent-Range: bytes 100-119/\(total)"), head("ETag: \"a\"\nContent-Range: \(range)")
        )
        let received = ReceivedPart(
            first.view, status: .partialContent, contentLength: 20, asked: .between(100, 119))
        let part = try #require(received)
        let made = ResumableContent(
            first.view, status: .partialContent, contentLength: 20, part: part)
        var content = try #require(made)
        #expect(Self.conditions(content, after: 5) == "Range: bytes=105-119\r\nIf-Range: \"a\"\r\n")
        let found = content.noteRest(
            answer.view, status: .partialContent, contentLength: nil, after: 5, isFromSameServer: true)
        #expect(found == end && content.contentLength == 20)
    }

    private static func conditions(_ content: ResumableContent, after received: Int) -> String {
        let buffer = ByteBuffer(capacity: 64)
        content.writeConditions(after: received, to: buffer)
        return String(buffer.copied())
    }
}
