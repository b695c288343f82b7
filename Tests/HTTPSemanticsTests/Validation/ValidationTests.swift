import Bytes
import HTTPSemantics
import Testing

/// RFC 9111 §4.3.1, §4.3.3, §4.3.4, §4.3.5: asking the origin, and what its answer is about.
struct ValidationTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let clause: String, stored: [String], client: String, expected: String

        init(_ clause: String, _ stored: [String], client: String = "", _ expected: String) {
            (self.clause, self.stored, self.client, self.expected) = (clause, stored, client, expected)
        }

        var testDescription: String { "\(clause): \(stored), client \(client)" }
    }

    static let requests: [Case] = [
        Case("§4.3.1 nothing to ask with", [""], ""),
        Case("§4.3.1 the tag", ["ETag: \"a\""], "If-None-Match: \"a\"\r\n"),
        Case("§4.3.1 a weak tag", ["ETag: W/\"a\""], "If-None-Match: W/\"a\"\r\n"),
        Case("§4.3.1 no tag", ["ETag: a"], ""),
        Case(
            "§4.3.1 the date as it stands", ["Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT"],
            "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n"),
        Case("§4.3.1 no date", ["Last-Modified: yesterday"], ""),
        Case(
            "§4.3.1 both", ["ETag: \"a\"\nLast-Modified: {0}"],
            "If-None-Match: \"a\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        Case(
            "§4.3.1 several tags, no date", ["ETag: \"a\"\nLast-Modified: {0}", "ETag: \"b\"\nLast-Modified: {0}"],
            "If-None-Match: \"a\", \"b\"\r\n"),
        Case("§4.3.1 several, one without a tag", ["ETag: \"a\"", "Last-Modified: {0}"], "If-None-Match: \"a\"\r\n"),
        Case("§4.3.1 the same tag once", ["ETag: \"a\"", "ETag: \"a\""], "If-None-Match: \"a\"\r\n"),
        Case(
            "§4.3.2 the client's tags too", ["ETag: \"a\""], client: "If-None-Match: \"x\", \"a\"",
            "If-None-Match: \"a\", \"x\"\r\n"),
        Case(
            "§4.3.2 from several lines", ["ETag: \"a\""], client: "If-None-Match: \"x\"\nIf-None-Match: W/\"y\"",
            "If-None-Match: \"a\", \"x\", W/\"y\"\r\n"),
        Case("§4.3.2 not the client's star", ["ETag: \"a\""], client: "If-None-Match: *", "If-None-Match: \"a\"\r\n"),
        Case("§4.3.2 nor what is no tag", ["ETag: \"a\""], client: "If-None-Match: foo", "If-None-Match: \"a\"\r\n"),
        Case("§4.3.2 nor where we have none ourselves", [""], client: "If-None-Match: \"x\"", ""),
        Case(
            "§4.3.2 a comma inside a tag", ["ETag: \"a,b\""], client: "If-None-Match: \"a,b\"",
            "If-None-Match: \"a,b\"\r\n"),
    ]

    @Test(arguments: requests)
    func `the origin is asked about every stored response that it could confirm`(row: Case) {
        var validation = ValidationRequest()
        for stored in row.stored {
            let block = head(stored)
            validation.add(block.view, facts: facts(stored))
        }
        let client = head(row.client)
        validation.merge(client: client.view)
        #expect(written { validation.write(to: $0) } == row.expected)
    }

    @Test func `a response that may be another client's is validated without its date`() {
        var validation = ValidationRequest()
        let fields = "ETag: \"a\"\nLast-Modified: {0}"
        let stored = head(fields)
        validation.add(stored.view, facts: facts(fields), byDate: false)
        #expect(written { validation.write(to: $0) } == "If-None-Match: \"a\"\r\n")
    }

    @Test func `tags that the client alone has are recognised`() {
        let rows: [(stored: String, client: String, expected: Bool)] = [
            ("ETag: \"a\"", "If-None-Match: \"a\"", false), ("ETag: \"a\"", "If-None-Match: \"a\", \"c\"", true),
            ("ETag: \"a\"", "If-None-Match: *", false), ("ETag: \"a\"", "If-None-Match: c", false),
            ("ETag: \"a\"", "", false),
            ("Last-Modified: {0}", "If-None-Match: \"c\"", false), ("ETag: \"a\"", "If-None-Match: W/\"a\"", true),
        ]
        for row in rows {
            var validation = ValidationRequest()
            let stored = head(row.stored), client = head(row.client)
            validation.add(stored.view, facts: facts(row.stored))
            validation.merge(client: client.view)
            #expect(validation.hasClientTags == row.expected, "\(row)")
        }
    }

    @Test func `the list of tags is limited in number, whatever a client sends`() {
        var validation = ValidationRequest()
        let stored = head("ETag: \"a\"")
        let tags = (0..<5000).map { "\"\($0)\"" }
        let client = head("If-None-Match: \(tags.joined(separator: ", "))")
        validation.add(stored.view, facts: facts("ETag: \"a\""))
        validation.merge(client: client.view)
        let list = (["\"a\""] + tags.prefix(ValidationRequest.maxClientTags)).joined(separator: ", ")
        #expect(written { validation.write(to: $0) } == "If-None-Match: \(list)\r\n")
    }

    @Test func `the list of tags is limited in bytes, whatever a client sends`() {
        var validation = ValidationRequest()
        let stored = head("ETag: \"a\"")
        let tags = (0..<64).map { "\"\(String(repeating: "x", count: 444))\(100 + $0)x\"" }
        let client = head("If-None-Match: \(tags.joined(separator: ", "))")
        validation.add(stored.view, facts: facts("ETag: \"a\""))
        validation.merge(client: client.view)
        let list = (["\"a\""] + tags.prefix(9)).joined(separator: ", ")
        #expect(written { validation.write(to: $0) } == "If-None-Match: \(list)\r\n")
    }

    /// The client's `If-None-Match`, the fields of the 304, and whether it is for what the client has.
    static let confirmations: [(String, String, Bool)] = [
        ("\"c\"", "ETag: \"c\"", true), ("\"b\", \"c\"", "ETag: \"c\"", true), ("W/\"c\"", "ETag: \"c\"", true),
        ("\"c\"", "ETag: W/\"c\"", true),
        ("\"c\"", "ETag: \"d\"", false), ("*", "ETag: \"c\"", false), ("c", "ETag: \"c\"", false), ("\"c\"", "", false),
        ("", "ETag: \"c\"", false),
        ("\"c\"", "ETag: c", false), ("\"b,c\"", "ETag: \"c\"", false),
    ]

    @Test(arguments: confirmations)
    func `a 304 is for the client if its tag is one of the client's`(tags: String, answer: String, expected: Bool) {
        let client = head(tags.isEmpty ? "" : "If-None-Match: \(tags)"), notModified = head(answer)
        let isConfirmed = ClientConditions.isConfirmed(client.view, by: notModified.view)
        #expect(isConfirmed == expected)
    }

    struct Selection: Sendable, CustomTestStringConvertible {
        let clause: String, notModified: String, stored: [String], expected: [Int]

        init(_ clause: String, _ notModified: String, _ stored: [String], _ expected: [Int]) {
            (self.clause, self.notModified, self.stored, self.expected) = (clause, notModified, stored, expected)
        }

        var testDescription: String { "\(clause): \(notModified) for \(stored)" }
    }

    static let selections: [Selection] = [
        Selection("§4.3.4 a strong tag", "ETag: \"a\"", ["ETag: \"a\""], [0]),
        Selection("§4.3.4 a strong tag picks its own", "ETag: \"b\"", ["ETag: \"a\"", "ETag: \"b\""], [1]),
        Selection("§4.3.4 all that have it", "ETag: \"a\"", ["ETag: \"a\"", "ETag: \"b\"", "ETag: \"a\""], [0, 2]),
        Selection("§4.3.4 a strong tag that none has", "ETag: \"c\"", ["ETag: \"a\"", "ETag: \"b\""], []),
        Selection("§4.3.4 a strong tag and only one stored without", "ETag: \"c\"", [""], []),
        Selection(
            "§4.3.4 a strong tag, where only the weak one was asked about", "ETag: \"a\"", ["ETag: W/\"a\""], [0]),
        Selection(
            "§4.3.4 a strong tag does not match a weak one of several", "ETag: \"a\"",
            ["ETag: W/\"a\"", "ETag: W/\"a\""], []),
        Selection(
            "§4.3.4 a strong tag goes to the strong one", "ETag: \"a\"", ["ETag: W/\"a\"", "ETag: \"a\""], [1]),
        Selection("§4.3.4 a strong tag, and another weak one", "ETag: \"a\"", ["ETag: W/\"b\""], []),
        Selection(
            "§4.3.4 a strong tag goes before the date", "ETag: \"c\"\nLast-Modified: {-9}", ["Last-Modified: {-9}"], []),
        Selection("§4.3.4 a weak tag", "ETag: W/\"a\"", ["ETag: W/\"b\"", "ETag: W/\"a\""], [1]),
        Selection("§4.3.4 a weak tag matches a strong one", "ETag: W/\"a\"", ["ETag: \"a\""], [0]),
        Selection(
            "§4.3.4 a weak tag: the most recent", "ETag: W/\"a\"",
            ["ETag: W/\"a\"\nDate: {-5}", "ETag: W/\"a\"\nDate: {-9}"], [0]),
        Selection("§4.3.4 a weak tag that none has", "ETag: W/\"c\"", ["ETag: W/\"a\""], []),
        Selection(
            "§4.3.4 a weak tag and one stored with a date only", "ETag: W/\"a\"\nLast-Modified: {-9}",
            ["Last-Modified: {-9}"], []),
        Selection(
            "§4.3.4 the date is a weak validator", "Last-Modified: {-9}",
            ["Last-Modified: {-8}", "Last-Modified: {-9}"], [1]),
        Selection(
            "§4.3.4 the date: the most recent", "Last-Modified: {-9}",
            ["Last-Modified: {-9}\nDate: {-5}", "Last-Modified: {-9}\nDate: {-2}"], [1]),
        Selection("§4.3.4 a date that none has", "Last-Modified: {-9}", ["Last-Modified: {-8}"], []),
        Selection("§4.3.4 no validator, one stored without", "", [""], [0]),
        Selection("§4.3.4 no validator, one stored that we asked about", "", ["ETag: \"a\""], [0]),
        Selection("§4.3.4 no validator, several stored", "", ["", ""], []),
        Selection("§4.3.4 what is no tag is not the stored one", "ETag: a", ["ETag: \"a\""], []),
        Selection("§4.3.4 what is no tag, changed", "ETag: b", ["ETag: a"], []),
        Selection(
            "§4.3.4 what is no tag, changed, and the same date", "ETag: b\nLast-Modified: {-9}",
            ["ETag: a\nLast-Modified: {-9}"], []),
        Selection(
            "§4.3.4 what is no tag, the same, and the same date", "ETag: a\nLast-Modified: {-9}",
            ["ETag: a\nLast-Modified: {-9}"], [0]),
        Selection("§4.3.4 what is no tag, the same, and no date", "ETag: a", ["ETag: a\nLast-Modified: {-9}"], [0]),
        Selection("§4.3.4 what is no date, changed", "Last-Modified: Sun, 06-Nov-22", ["Last-Modified: {-9}"], []),
        Selection("§4.3.4 nothing stored", "ETag: \"a\"", [], []),
    ]

    @Test(arguments: selections)
    func `a 304 freshens the stored responses that it selects, and no others`(row: Selection) {
        let notModified = head(row.notModified)
        var selection = FresheningSelection(notModified: facts(row.notModified, status: 304))
        for stored in row.stored {
            let block = head(stored)
            selection.add(block.view, facts: facts(stored), notModified: notModified.view)
        }
        #expect(selection.selected == row.expected)
    }

    @Test func `a strong tag that the client has too does not confirm a weak one`() {
        let notModified = head("ETag: \"a\""), stored = head("ETag: W/\"a\"")
        let rows = [("\"a\"", true), ("W/\"a\"", false), ("\"b\"", false), ("*", false), ("\"b\", \"a\"", true)]
        for (tags, expected) in rows {
            let client = head("If-None-Match: \(tags)")
            let isClients = ClientConditions.isConfirmed(client.view, by: notModified.view, strongly: true)
            #expect(isClients == expected, "\(tags)")
        }
        var selection = FresheningSelection(notModified: facts("ETag: \"a\"", status: 304), mayBeForClient: true)
        selection.add(stored.view, facts: facts("ETag: W/\"a\""), notModified: notModified.view)
        #expect(selection.selected.isEmpty)
    }

    @Test func `a client without the tag of a 304 gets the full response`() {
        // §4.3.2: 304 with an entity tag that is not in the client's list
        let stored = head("ETag: \"ours\""), client = head("If-None-Match: \"theirs\"")
        let condition = ClientConditions.evaluate(client.view, stored: stored.view, facts: facts("ETag: \"ours\""))
        #expect(condition == .send)
    }

    static let heads: [(String, String, String, HeadFreshening)] = [
        ("§4.3.5 the same tag", "ETag: \"a\"", "ETag: \"a\"", .update),
        ("§4.3.5 another tag", "ETag: \"b\"", "ETag: \"a\"", .expire),
        ("§4.3.5 weak now", "ETag: W/\"a\"", "ETag: \"a\"", .expire),
        ("§4.3.5 a tag where there was none", "ETag: \"a\"", "", .expire),
        ("§4.3.5 the same date", "Last-Modified: {-9}", "Last-Modified: {-9}", .update),
        ("§4.3.5 another date", "Last-Modified: {-8}", "Last-Modified: {-9}", .expire),
        (
            "§4.3.5 the same tag, another date", "ETag: \"a\"\nLast-Modified: {-8}", "ETag: \"a\"\nLast-Modified: {-9}",
            .expire
        ),
        ("§4.3.5 the same tag, no date", "ETag: \"a\"", "ETag: \"a\"\nLast-Modified: {-9}", .update),
        (
            "§4.3.5 the same date, no tag where there was one", "Last-Modified: {-9}",
            "ETag: \"a\"\nLast-Modified: {-9}", .expire
        ),
        ("§4.3.5 the same length alone proves nothing", "Content-Length: 10", "Content-Length: 10", .expire),
        ("§4.3.5 no tag where there was one", "Content-Length: 10", "ETag: \"a\"\nContent-Length: 10", .expire),
        ("§4.3.5 what is no tag, changed", "ETag: a\nLast-Modified: {-9}", "ETag: b\nLast-Modified: {-9}", .expire),
        (
            "§4.3.5 what is no tag, where there was one", "ETag: a\nLast-Modified: {-9}",
            "ETag: \"a\"\nLast-Modified: {-9}", .expire
        ),
        ("§4.3.5 what is no tag, the same", "ETag: a\nLast-Modified: {-9}", "ETag: a\nLast-Modified: {-9}", .update),
        ("§4.3.5 what is no tag, the same, and nothing else", "ETag: a", "ETag: a", .expire),
        (
            "§4.3.5 what is no date, changed", "ETag: \"a\"\nLast-Modified: Sun, 06-Nov-22",
            "ETag: \"a\"\nLast-Modified: Sun, 06-Nov-21", .expire
        ),
        ("§4.3.5 another length", "Content-Length: 11", "Content-Length: 10", .expire),
        (
            "§4.3.5 the same tag, and the length of what was stored chunked", "ETag: \"a\"\nContent-Length: 10",
            "ETag: \"a\"", .update
        ),
        ("§4.3.5 the same tag, another length", "ETag: \"a\"\nContent-Length: 11", "ETag: \"a\"", .expire),
        ("§4.3.5 nothing to compare", "", "", .expire),
        ("§4.3.5 nothing received", "", "ETag: \"a\"", .expire),
    ]

    @Test(arguments: heads)
    func `HEAD freshens or expires the response stored by GET`(
        clause: String, answer: String, stored: String, expected: HeadFreshening
    ) {
        let new = head(answer), old = head(stored)
        let verdict = HeadFreshening(
            head: new.view, headFacts: facts(answer), stored: old.view, storedFacts: facts(stored), storedLength: 10
        )
        #expect(verdict == expected)
    }

    @Test func `HEAD changes nothing unless both statuses are 200`() {
        let new = head("ETag: \"b\""), old = head("ETag: \"a\"")
        for (status, storedStatus) in [(404, 200), (200, 404)] as [(UInt16, UInt16)] {
            let verdict = HeadFreshening(
                head: new.view, headFacts: facts("ETag: \"b\"", status: status), stored: old.view,
                storedFacts: facts("ETag: \"a\"", status: storedStatus), storedLength: 0
            )
            #expect(verdict == .none)
        }
    }
}
