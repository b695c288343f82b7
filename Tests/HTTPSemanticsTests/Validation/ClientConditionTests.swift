import HTTPSemantics
import Testing

/// RFC 9111 §4.3.2, RFC 9110 §13: a client's own preconditions on a stored response.
struct ClientConditionTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let clause: String, stored: String, asked: String, expected: ClientCondition

        init(_ clause: String, _ stored: String, _ asked: String, _ expected: ClientCondition) {
            (self.clause, self.stored, self.asked, self.expected) = (clause, stored, asked, expected)
        }

        var testDescription: String { "\(clause): \(stored), asked \(asked)" }
    }

    static let cases: [Case] = [
        Case("RFC 9110 §13.2 none", "ETag: \"a\"", "", .send),
        Case("RFC 9110 §13.1.2 the tag", "ETag: \"a\"", "If-None-Match: \"a\"", .notModified),
        Case("RFC 9110 §13.1.2 another tag", "ETag: \"a\"", "If-None-Match: \"b\"", .send),
        Case("RFC 9110 §13.1.2 tags have a case", "ETag: \"a\"", "If-None-Match: \"A\"", .send),
        Case("RFC 9110 §13.1.2 one of several", "ETag: \"a\"", "If-None-Match: \"b\", \"a\"", .notModified),
        Case(
            "RFC 9110 §13.1.2 over several lines", "ETag: \"a\"", "If-None-Match: \"b\"\nIf-None-Match: \"a\"",
            .notModified),
        Case("RFC 9110 §13.1.2 any", "ETag: \"a\"", "If-None-Match: *", .notModified),
        Case("RFC 9110 §13.1.2 any, of a response without a tag", "", "If-None-Match: *", .notModified),
        Case("RFC 9110 §13.1.2 the quoted star is a tag", "ETag: \"a\"", "If-None-Match: \"*\"", .send),
        Case("RFC 9110 §8.8.3.2 compared weakly", "ETag: W/\"a\"", "If-None-Match: \"a\"", .notModified),
        Case("RFC 9110 §8.8.3.2 the other way too", "ETag: \"a\"", "If-None-Match: W/\"a\"", .notModified),
        Case("RFC 9110 §8.8.3.2 both weak", "ETag: W/\"a\"", "If-None-Match: W/\"a\"", .notModified),
        Case("RFC 9110 §8.8.3.2 as long as a weak one", "ETag: \"a\"", "If-None-Match: \"aW/\"", .send),
        Case("RFC 9110 §8.8.3 a small w is no tag", "ETag: \"a\"", "If-None-Match: w/\"a\"", .send),
        Case("RFC 9110 §8.8.3 no quotes, no tag", "ETag: \"a\"", "If-None-Match: a", .send),
        Case("RFC 9110 §8.8.3 not in what is stored either", "ETag: a", "If-None-Match: a", .send),
        Case("RFC 9110 §8.8.3 no white space in a tag", "ETag: \"a b\"", "If-None-Match: \"a b\"", .send),
        Case("RFC 9110 §8.8.3 no control in a tag", "ETag: \"a\u{7f}b\"", "If-None-Match: \"a\u{7f}b\"", .send),
        Case("RFC 9110 §8.8.3 no quote in a tag", "ETag: \"a\"b\"", "If-None-Match: \"a\"b\"", .send),
        Case("RFC 9110 §8.8.3 letters beyond ASCII", "ETag: \"ä\"", "If-None-Match: \"ä\"", .notModified),
        Case("RFC 9110 §8.8.3 a comma inside a tag", "ETag: \"a,b\"", "If-None-Match: \"x\", \"a,b\"", .notModified),
        Case("RFC 9110 §8.8.3 an empty tag", "ETag: \"\"", "If-None-Match: \"\"", .notModified),
        Case("RFC 9110 §13.1.2 no tag stored", "Last-Modified: {-9}", "If-None-Match: \"a\"", .send),
        Case(
            "§4.3.2 If-None-Match goes before the date: differs", "ETag: \"a\"\nLast-Modified: {-9}",
            "If-None-Match: \"b\"\nIf-Modified-Since: {0}", .send),
        Case(
            "§4.3.2 If-None-Match goes before the date: same", "ETag: \"a\"\nLast-Modified: {-9}",
            "If-None-Match: \"a\"\nIf-Modified-Since: {-99}", .notModified),
        Case(
            "§4.3.2 even one without sense", "Last-Modified: {-9}", "If-None-Match: foo\nIf-Modified-Since: {0}", .send),
        Case("RFC 9110 §13.1.3 the date", "Last-Modified: {-9}", "If-Modified-Since: {-9}", .notModified),
        Case("RFC 9110 §13.1.3 a later date", "Last-Modified: {-9}", "If-Modified-Since: {0}", .notModified),
        Case("RFC 9110 §13.1.3 an earlier date", "Last-Modified: {-9}", "If-Modified-Since: {-10}", .send),
        Case("RFC 9110 §13.1.3 a date to come", "Last-Modified: {-9}", "If-Modified-Since: {99}", .notModified),
        Case(
            "RFC 9110 §5.6.7 in the RFC 850 form", "Last-Modified: {0}",
            "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT", .notModified),
        Case(
            "RFC 9110 §5.6.7 in the asctime form", "Last-Modified: {0}", "If-Modified-Since: Sun Nov  6 08:49:37 1994",
            .notModified),
        Case("RFC 9110 §13.1.3 no date is ignored", "Last-Modified: {-9}", "If-Modified-Since: 0", .send),
        Case(
            "RFC 9110 §13.1.3 two are ignored", "Last-Modified: {-9}", "If-Modified-Since: {0}\nIf-Modified-Since: {0}",
            .send),
        Case("RFC 9110 §13.1.3 two in a line are ignored", "Last-Modified: {-9}", "If-Modified-Since: {0}, {0}", .send),
        Case("§4.3.2 without Last-Modified, Date counts", "Date: {-9}", "If-Modified-Since: {-9}", .notModified),
        Case("§4.3.2 Date, later than that", "Date: {-9}", "If-Modified-Since: {-10}", .send),
        Case("§4.3.2 without Date, when it was received", "", "If-Modified-Since: {0}", .notModified),
        Case("§4.3.2 received later than that", "", "If-Modified-Since: {-1}", .send),
        Case("§4.3.2 If-Match is not a cache's", "ETag: \"a\"", "If-Match: \"b\"", .send),
        Case("§4.3.2 nor If-Unmodified-Since", "Last-Modified: {0}", "If-Unmodified-Since: {-9}", .send),
    ]

    @Test(arguments: cases)
    func `a client that has the response gets 304`(row: Case) {
        let stored = head(row.stored), asked = head(row.asked)
        let condition = ClientConditions.evaluate(asked.view, stored: stored.view, facts: facts(row.stored))
        #expect(condition == row.expected)
    }

    @Test(arguments: [203, 204, 301, 302, 404, 410, 500])
    func `a stored response other than 200 and 206 never becomes a 304`(status: UInt16) {
        let stored = head("ETag: \"a\""), asked = head("If-None-Match: \"a\"")
        let condition = ClientConditions.evaluate(
            asked.view, stored: stored.view, facts: facts("ETag: \"a\"", status: status))
        #expect(condition == .send)
    }

    @Test(arguments: [200, 206])
    func `a stored 200 or 206 becomes a 304`(status: UInt16) {
        let stored = head("ETag: \"a\""), asked = head("If-None-Match: \"a\"")
        let condition = ClientConditions.evaluate(
            asked.view, stored: stored.view, facts: facts("ETag: \"a\"", status: status))
        #expect(condition == .notModified)
    }

    @Test func `a 304 omits the fields that describe content`() {
        // RFC 9110 §15.4.5
        let tagged = head("ETag: \"a\"\nLast-Modified: {0}"), dated = head("Last-Modified: {0}")
        let withTag = FieldSet.omittedFromNotModified(tagged.view),
            withDate = FieldSet.omittedFromNotModified(dated.view)
        for field in [KnownField.contentLength, .contentType, .contentEncoding, .contentRange] {
            #expect(withTag.contains(field))
        }
        for field in [KnownField.cacheControl, .contentLocation, .date, .etag, .expires, .vary] {
            #expect(!withTag.contains(field))
        }
        #expect(withTag.contains(.lastModified))
        #expect(!withDate.contains(.lastModified))
    }

    static let ranges: [(String, String, String, Bool)] = [
        ("RFC 9110 §13.1.5 none", "ETag: \"a\"", "", true),
        ("RFC 9110 §13.1.5 the tag", "ETag: \"a\"", "If-Range: \"a\"", true),
        ("RFC 9110 §13.1.5 another tag", "ETag: \"a\"", "If-Range: \"b\"", false),
        ("RFC 9110 §13.1.5 a weak tag asked", "ETag: \"a\"", "If-Range: W/\"a\"", false),
        ("RFC 9110 §13.1.5 a weak tag stored", "ETag: W/\"a\"", "If-Range: \"a\"", false),
        ("RFC 9110 §13.1.5 both weak", "ETag: W/\"a\"", "If-Range: W/\"a\"", false),
        ("RFC 9110 §13.1.5 no tag stored", "", "If-Range: \"a\"", false),
        ("RFC 9110 §13.1.5 the date", "Date: {0}\nLast-Modified: {-9}", "If-Range: {-9}", true),
        ("RFC 9110 §13.1.5 a later date is no match", "Date: {0}\nLast-Modified: {-9}", "If-Range: {-8}", false),
        ("RFC 9110 §13.1.5 an earlier one neither", "Date: {0}\nLast-Modified: {-9}", "If-Range: {-10}", false),
        ("RFC 9110 §8.8.2.2 a date that is not strong", "Date: {0}\nLast-Modified: {0}", "If-Range: {0}", false),
        ("RFC 9110 §8.8.2.2 strong by a second", "Date: {0}\nLast-Modified: {-1}", "If-Range: {-1}", true),
        ("RFC 9110 §8.8.2.2 nothing to tell by", "Last-Modified: {-9}", "If-Range: {-9}", false),
        ("RFC 9110 §13.1.5 neither tag nor date", "ETag: \"a\"", "If-Range: a", false),
        ("RFC 9110 §13.1.5 two", "ETag: \"a\"", "If-Range: \"a\"\nIf-Range: \"a\"", false),
    ]

    @Test(arguments: ranges)
    func `If-Range permits a range only on an exact, strong match`(
        clause: String, stored: String, asked: String, expected: Bool
    ) {
        let block = head(stored), request = head(asked)
        let holds = RangeCondition.holds(request.view, stored: block.view, facts: facts(stored))
        #expect(holds == expected)
    }
}
