import Bytes
import HTTPSemantics
import Testing

/// RFC 9111 §4.1: which requests get the same variant.
struct VariantTests {
    static func rule(_ fields: String) -> VaryRule? {
        let block = head(fields)
        return VaryRule(block.view)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let clause: String, vary: String, stored: String, presented: String, matches: Bool

        init(_ clause: String, _ vary: String, _ stored: String, _ presented: String, _ matches: Bool) {
            (self.clause, self.vary, self.stored, self.presented, self.matches) = (
                clause, vary, stored, presented, matches
            )
        }

        var testDescription: String { "\(clause): Vary: \(vary), \(stored) / \(presented)" }
    }

    static let cases: [Case] = [
        Case("nothing nominated", "", "A: 1", "A: 2", true),
        Case("the same", "Foo", "Foo: 1", "Foo: 1", true),
        Case("another value", "Foo", "Foo: 1", "Foo: 2", false),
        Case("a longer value", "Foo", "Foo: 1", "Foo: 11", false),
        Case("a shorter value", "Foo", "Foo: 11", "Foo: 1", false),
        Case("absent from both", "Foo", "", "", true),
        Case("absent from the presented", "Foo", "Foo: 1", "", false),
        Case("absent from the stored", "Foo", "", "Foo: 1", false),
        Case("absent is not empty", "Foo", "", "Foo:", false),
        Case("empty is not absent", "Foo", "Foo:", "", false),
        Case("empty and empty", "Foo", "Foo:", "Foo:", true),
        Case("names in any case", "fOO", "Foo: 1", "foo: 1", true),
        Case("values in their case", "Foo", "Foo: a", "Foo: A", false),
        Case("what is not nominated does not matter", "Foo", "Foo: 1\nBar: 1", "Foo: 1\nBar: 2", true),
        Case("two fields, both equal", "Foo, Bar", "Foo: 1\nBar: 2", "Bar: 2\nFoo: 1", true),
        Case("two fields, one different", "Foo, Bar", "Foo: 1\nBar: 2", "Foo: 1\nBar: 3", false),
        Case("two fields do not swap values", "Foo, Bar", "Foo: 1\nBar: 2", "Foo: 2\nBar: 1", false),
        Case("nor run together", "Foo, Bar", "Foo: 1", "Foo: 1\nBar:", false),
        Case("white space around commas", "Accept", "Accept: 1, 2", "Accept: 1,2", true),
        Case("more white space", "Accept", "Accept: 1,2", "Accept: 1 \t,  2", true),
        Case("lines combined", "Accept", "Accept: 1\nAccept: 2", "Accept: 1, 2", true),
        Case("lines in another order", "Accept", "Accept: 1\nAccept: 2", "Accept: 2\nAccept: 1", false),
        Case("empty members", "Accept", "Accept: 1,,2,", "Accept: 1, 2", true),
        Case("an empty line among them", "Accept", "Accept: 1\nAccept:\nAccept: 2", "Accept: 1, 2", true),
        Case("white space inside a member", "Accept", "Accept: 1 2", "Accept: 12", false),
        Case("white space inside quotes", "Accept", "Accept: \"1, 2\"", "Accept: \"1,2\"", false),
        Case("white space behind quotes", "Accept", "Accept: \"a\" , b", "Accept: \"a\",b", true),
        Case("an escaped quote inside them", "Accept", "Accept: \"a\\\" , b\"", "Accept: \"a\\\",b\"", false),
        Case(
            "a known list, in any case", "Accept-Encoding", "Accept-Encoding: gzip, BR", "Accept-Encoding: GZIP,br",
            true),
        Case(
            "a known list, in another order", "Accept-Encoding", "Accept-Encoding: gzip, br",
            "Accept-Encoding: br, gzip", false),
        Case("languages in any case", "Accept-Language", "Accept-Language: de-AT", "Accept-Language: DE-at", true),
        Case("media types in their case", "Accept", "Accept: text/html;p=A", "Accept: text/html;p=a", false),
        Case("no list: a comma is a letter", "User-Agent", "User-Agent: a, b", "User-Agent: a,b", false),
        Case(
            "no list: nor does one join lines", "Referer", "Referer: http://a/x\nReferer: y", "Referer: http://a/x,y",
            false),
        Case("no list: two lines", "Cookie", "Cookie: a=1\nCookie: b=2", "cookie: a=1\nCookie: b=2", true),
        Case("no list: an empty line is a line", "Referer", "Referer:\nReferer: y", "Referer: y", false),
        Case("no list: and so is an empty last one", "Referer", "Referer: y\nReferer:", "Referer: y", false),
        Case("not known to be a list: a comma too many", "Foo", "Foo: 1", "Foo: 1,", false),
        Case("not known to be a list: white space", "Foo", "Foo: 1, 2", "Foo: 1,2", false),
        Case("not known to be a list: two lines", "Foo", "Foo: 1\nFoo: 2", "Foo: 1, 2", false),
        Case("not known to be a list: an empty line", "Foo", "Foo: 1\nFoo:", "Foo: 1", false),
        Case("no list: cookies", "Cookie", "Cookie: a=1; b=2", "Cookie: a=1; b=2", true),
        Case("no list: another cookie", "Cookie", "Cookie: a=1", "Cookie: a=2", false),
        Case("nominated twice is once", "Foo, foo", "Foo: 1", "Foo: 1", true),
    ]

    @Test(arguments: cases)
    func `a request matches if its nominated fields are equal`(row: Case) throws {
        let stored = head(row.stored), presented = head(row.presented)
        let rule = try #require(Self.rule("Vary: \(row.vary)"))
        let key = VariantKey(stored.view, under: rule)
        let matches = key.matches(presented.view, under: rule)
        let isEqual = key == VariantKey(presented.view, under: rule)
        let matchesItself = key.matches(stored.view, under: rule)
        let (own, other) = (
            VariantKey.hash(of: stored.view, under: rule), VariantKey.hash(of: presented.view, under: rule)
        )
        #expect(matches == row.matches)
        #expect(isEqual == row.matches)
        #expect(matchesItself)
        #expect(own == key.hash && (other == key.hash) == row.matches)
    }

    @Test(arguments: KeyTests.aliases)
    func `forwarded fields that origins may confuse with a nominated field choose the variant too`(
        left: String, right: String, isSame: Bool
    ) {
        let stored = head(left), presented = head(right), vary = head("Vary: Accept, X-Tenant")
        var policy = CachingPolicy()
        policy.forwardsOddNames = true
        let rule = VaryRule(vary.view, policy: policy) ?? .none, strict = VaryRule(vary.view) ?? .none
        let key = VariantKey(stored.view, under: rule)
        let matches = key.matches(presented.view, under: rule)
        let isEqual = key == VariantKey(presented.view, under: rule)
        let matchesItself = key.matches(stored.view, under: rule)
        let hash = VariantKey.hash(of: presented.view, under: rule)
        #expect(matches == isSame && isEqual == isSame && matchesItself && (hash == key.hash) == isSame)
        #expect(rule != strict)
    }

    static let rules: [Row<[String]?>] = [
        Row("RFC 9110 §12.5.5 none", "", []),
        Row("RFC 9110 §12.5.5 empty", "Vary:", []),
        Row("RFC 9110 §12.5.5 one", "Vary: Accept", ["accept"]),
        Row("RFC 9110 §12.5.5 several, sorted, each once", "Vary: Foo, accept\nVary: FOO", ["accept", "foo"]),
        Row("§4.1 * never matches", "Vary: *", nil),
        Row("§4.1 * among others", "Vary: Accept, *", nil),
        Row("§4.1 * in another line", "Vary: Accept\nVary: *", nil),
        Row("§4.1 no field name never matches", "Vary: Accept Encoding", nil),
        Row("§4.1 nor does a quoted one", "Vary: \"Accept\"", nil),
    ]

    @Test(arguments: rules)
    func `Vary nominates fields, in any order and case`(row: Row<[String]?>) {
        let rule = Self.rule(row.fields)
        #expect(rule.map { rule in (0..<rule.count).map { String(rule.name(at: $0)) } } == row.expected)
    }

    @Test func `a Vary with too many members never matches`() throws {
        let names = (0..<VaryRule.maxMembers + 1).map { "x-\($0)" }
        let most = try #require(Self.rule("Vary: \(names.dropLast().joined(separator: ", "))"))
        #expect(most.count == VaryRule.maxMembers)
        for vary in ["Vary: \(names.joined(separator: ", "))", names.map { "Vary: \($0)" }.joined(separator: "\n")] {
            #expect(Self.rule(vary) == nil)
            let facts = facts(vary)
            #expect(facts.contains(.variesByEverything) && !facts.contains(.varies))
        }
    }

    @Test func `two responses with the same Vary fields have equal rules`() {
        let left = Self.rule("Vary: Accept, Foo"), right = Self.rule("Vary: foo\nVary: ACCEPT")
        #expect(left == right)
        #expect(left.hashValue == right.hashValue)
    }

    @Test func `keys under different rules are never equal`() throws {
        let left = try #require(Self.rule("Vary: Foo")), right = try #require(Self.rule("Vary: Bar"))
        let request = head("Foo: 1\nBar: 1")
        let first = VariantKey(request.view, under: left), second = VariantKey(request.view, under: right)
        #expect(first != second)
        #expect(first != .none)
    }

    static let encodings: [(String, String, Bool)] = [
        ("gzip, br", "br, gzip", true), ("gzip, br", "br;q=1.0, gzip;q=0.8", true), ("gzip", "x-gzip", true),
        ("gzip, exotic", "gzip", false), ("gzip, exotic", "gzip,Exotic", true), ("gzip, exotic;q=0", "gzip", true),
        ("gzip, *;q=0", "gzip", false), ("ab", "gzip, br", false), ("gzip, br;q=0", "gzip", true),
        ("gzip, br;q=0.000", "gzip", true),
        ("gzip, identity", "gzip", true), ("gzip, identity;q=0", "gzip", false), ("gzip", "br", false),
        ("gzip", "gzip, br", false), ("*", "gzip", false), ("gzip", "deflate", false), ("zstd", "zstd, br", false),
        // Beside `*`, a refusal says something.
        ("*", "*, gzip;q=0", false), ("*, br", "br, *", false), ("*;q=0.5", "*;q=0.5", true),
        ("gzip, br", "gzip;q=0;x=1, br", false),
        ("gzip", "gzip;x=1", false), ("gzip;q=0, br", "br", true),
    ]

    @Test(arguments: encodings)
    func `the operator can have Accept-Encoding compared as a set of codings`(
        stored: String, presented: String, expected: Bool
    ) {
        let first = head("Accept-Encoding: \(stored)"), second = head("Accept-Encoding: \(presented)")
        let vary = head("Vary: Accept-Encoding")
        var policy = CachingPolicy()
        policy.normalisesAcceptEncoding = true
        let strict = VaryRule(vary.view) ?? .none, rule = VaryRule(vary.view, policy: policy) ?? .none
        let key = VariantKey(first.view, under: rule)
        let matches = key.matches(second.view, under: rule)
        #expect(matches == expected)
        #expect(rule != strict)
    }

    /// Content-Encoding, what the request said that brought it, what another one says, and whether that gets it.
    static let codings: [(String, String, String, Bool)] = [
        ("gzip", "gzip", "gzip, br", true), ("gzip", "gzip", "br;q=1, GZIP;q=0.5", true),
        ("GZip", "gzip", "gzip", true),
        ("x-gzip", "gzip", "gzip", true), ("gzip", "x-gzip", "*", true), ("gzip", "gzip", "*;q=0.1", true),
        ("gzip", "gzip", "gzip;q=0", false), ("gzip", "gzip", "*;q=0", false), ("gzip", "gzip", "*, gzip;q=0", false),
        ("gzip", "gzip", "gzip, gzip;q=0", false), ("gzip", "gzip", "*;q=0, gzip", true),
        ("gzip", "gzip", "gzip;q=one", false), ("gzip", "gzip", "gzip;q=0.000", false),
        ("gzip", "gzip", "gzip;q=0.001", true), ("gzip", "gzip", "identity", false), ("gzip", "gzip", "", false),
        ("gzip", "gzip", "gzipped", false), ("gzip, br", "br, gzip", "gzip;q=0.1, zstd, br", true),
        ("gzip, br", "br, gzip", "gzip", false), ("gzip, br", "br, gzip", "br", false),
        ("identity", "gzip", "br", true), ("identity, gzip", "gzip", "gzip, br", true),
        // Whoever does not accept it got it all the same: it is for those that say just the same.
        ("gzip", "br", "br", true), ("gzip", "br", "BR", true), ("gzip", "br", "gzip", false),
        ("gzip", "br", "identity", false), ("gzip", "gzip;q=0", "identity", false),
        // More codings than anybody uses.
        ("a, b, c, d, e", "a, b, c, d, e", "a, b, c, d, e", true),
        ("a, b, c, d, e", "a, b, c, d, e", "e, d, c, b, a", false),
    ]

    @Test(arguments: codings)
    func `a coded response is for requests that accept its codings, even without Vary`(
        coding: String, accepted: String, presented: String, matches: Bool
    ) throws {
        let rule = try #require(Self.rule("Content-Encoding: \(coding)"))
        let first = head("Accept-Encoding: \(accepted)"), second = head("Accept-Encoding: \(presented)")
        let key = VariantKey(first.view, under: rule)
        let (own, other) = (key.matches(first.view, under: rule), key.matches(second.view, under: rule))
        let isEqual = key == VariantKey(second.view, under: rule)
        let hash = VariantKey.hash(of: second.view, under: rule)
        #expect(own && other == matches && isEqual == matches && (hash == key.hash) == matches)
    }

    @Test func `a request without Accept-Encoding does not match one that has the field`() throws {
        let rule = try #require(Self.rule("Content-Encoding: gzip"))
        let silent = head(""), requests = ["gzip", "", "identity", "*"].map { head("Accept-Encoding: \($0)") }
        let key = VariantKey(silent.view, under: rule)
        for request in requests {
            let matches = key.matches(request.view, under: rule)
            #expect(!matches)
        }
        // What `Connection` names the origin does not see.
        let hidden = head("Accept-Encoding: gzip\nConnection: accept-encoding")
        let matches = key.matches(hidden.view, under: rule)
        #expect(matches)
    }

    @Test func `each coding has its own rule, and there is none if Vary names Accept-Encoding`() throws {
        let gzip = try #require(Self.rule("Content-Encoding: gzip"))
        let brotli = try #require(Self.rule("Content-Encoding: br"))
        let stated = try #require(Self.rule("Content-Encoding: gzip\nVary: Accept-Encoding"))
        let both = try #require(Self.rule("Content-Encoding: gzip\nVary: Origin"))
        #expect(gzip.isByCoding && gzip != brotli && !gzip.hasSameCodings(as: brotli))
        #expect(!stated.isByCoding && gzip != stated && !gzip.hasSameCodings(as: stated))
        #expect(both.isByCoding && both.count == 2 && both.hasSameCodings(as: gzip))
        #expect(VaryRule.none.hasSameCodings(as: stated))
        let request = head("Accept-Encoding: gzip, br")
        let keys = [gzip, brotli, stated].map { VariantKey(request.view, under: $0) }
        #expect(Set(keys).count == 3)
        #expect(facts("Content-Encoding: gzip").contains(.varies))
        #expect(!facts("Content-Encoding: identity").contains(.varies))
    }

    @Test func `the most recent response is the one with the latest Date`() {
        // §4
        let older = facts("Date: {-20}"), newer = facts("Date: {-10}")
        #expect(newer.isMoreRecent(than: older))
        #expect(!older.isMoreRecent(than: newer))
    }

    @Test func `the most recent of several responses with one Date is the last to arrive`() {
        let block = head("Date: {0}")
        let first = ResponseFacts(
            status: .ok, fields: block.view, requestTime: arrival, responseTime: arrival, policy: CachingPolicy())
        let later = arrival.after(1)
        let second = ResponseFacts(
            status: .ok, fields: block.view, requestTime: later, responseTime: later, policy: CachingPolicy())
        #expect(second.isMoreRecent(than: first))
        #expect(!first.isMoreRecent(than: second))
    }

    static let seen: [(vary: String, change: @Sendable (inout CachingPolicy) -> Void, chosen: [String]?)] = [
        ("X-Forwarded-Host, Accept, Forwarded, x_forwarded_port, Host, Connection", { _ in }, ["accept"]),
        ("X-Forwarded-Proto", { _ in }, []), ("HTTP2-Settings", { _ in }, []),
        ("X_Tenant, Accept", { _ in }, ["accept"]),
        ("X_Tenant, X_Forwarded_Host", { $0.forwardsOddNames = true }, ["x_tenant"]),
        ("X-Forwarded-Proto, Forwarded", { $0.writesForwarded = false }, ["forwarded", "x-forwarded-proto"]),
        ("X-Forwarded-For", { _ in }, nil), ("Accept, X-Forwarded-For, X-Forwarded-Host", { _ in }, nil),
        ("X-Forwarded-For", { $0.writesForwarded = false }, ["x-forwarded-for"]),
        ("X-Real-IP, Accept", { _ in }, ["accept"]), ("X-Real-IP, Accept", { $0.forwardsSenders = true }, nil),
        ("X-Real-IP", { $0.writesForwarded = false }, ["x-real-ip"]), ("X-Host", { $0.forwardsSenders = true }, []),
        ("X-Real-IP, Accept", { ($0.forwardsSenders, $0.keyedFields) = (true, [ByteSlice("x-real-ip")]) }, ["accept"]),
        ("Via", { _ in }, nil), ("Via", { $0.writesVia = false }, ["via"]), ("TE", { _ in }, nil),
        ("Upgrade", { _ in }, nil),
    ]

    @Test(arguments: seen.indices)
    func `only a field that the origin gets as sent chooses a variant`(row: Int) {
        let (vary, change, chosen) = Self.seen[row]
        var policy = CachingPolicy()
        change(&policy)
        let rule = VaryRule(head("Vary: \(vary)").view, policy: policy)
        let names = rule.map { rule in (0..<rule.count).map { String(rule.name(at: $0)) } }
        #expect(names == chosen)
        let facts = facts("Vary: \(vary)", policy: policy)
        #expect(facts.contains(.varies) == !(chosen ?? []).isEmpty)
        #expect(facts.contains(.variesByMore) == (chosen == nil))
    }
}
