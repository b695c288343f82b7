import Bytes
import HTTPSemantics
import Testing

/// RFC 9111 §3.1, §3.2: which fields are kept, and how a 304 changes them.
struct StoredFieldTests {
    /// As many names as are looked at.
    private static let sixtyFour = Array(repeating: "b", count: 64).joined(separator: ",")

    static let kept: [Row<String>] = [
        Row(
            "§3.1 unknown fields, in order and byte for byte", "Date: {0}\nX-Foo:  a\tb \nx-foo: C\nFOO: d",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\nX-Foo: a\tb \nx-foo: C\nFOO: d"),
        Row("§3.1 Connection", "Date: x\nConnection: close\nA: 1", "Date: x\nA: 1"),
        Row("§3.1 what Connection names", "Date: x\nConnection: a, B\nA: 1\nb: 2\nC: 3", "Date: x\nC: 3"),
        Row("§3.1 in several lines", "Date: x\nConnection: a\nConnection: b\nA: 1\nB: 2", "Date: x"),
        Row("§3.1 named behind its line", "Date: x\nA: 1\nConnection: a", "Date: x"),
        Row("§3.1 known fields it names", "Date: x\nConnection: etag\nETag: \"a\"", "Date: x"),
        Row("RFC 9110 §7.6.1 Keep-Alive", "Date: x\nKeep-Alive: timeout=5", "Date: x"),
        Row("RFC 9110 §7.6.1 Proxy-Connection", "Date: x\nProxy-Connection: keep-alive", "Date: x"),
        Row("RFC 9110 §7.6.1 TE", "Date: x\nTE: trailers", "Date: x"),
        Row("RFC 9110 §7.6.1 Transfer-Encoding", "Date: x\nTransfer-Encoding: chunked", "Date: x"),
        Row("RFC 9110 §7.6.1 Upgrade", "Date: x\nUpgrade: h2c", "Date: x"),
        Row("RFC 7540 §3.2.1 HTTP2-Settings", "Date: x\nHTTP2-Settings: AAMAAABk", "Date: x"),
        Row("RFC 9110 §6.6.2 Trailer", "Date: x\nTrailer: foo", "Date: x"),
        Row("§3.1 Proxy-Authenticate", "Date: x\nProxy-Authenticate: Basic", "Date: x"),
        Row("§3.1 Proxy-Authentication-Info", "Date: x\nProxy-Authentication-Info: a=b", "Date: x"),
        Row("§3.1 Proxy-Authorization", "Date: x\nProxy-Authorization: a", "Date: x"),
        Row("§3.1 WWW-Authenticate is kept", "Date: x\nWWW-Authenticate: Basic", "Date: x\nWWW-Authenticate: Basic"),
        Row("§4 Age, which each reuse states anew", "Date: x\nAge: 5", "Date: x"),
        Row(
            "§5.2.2.7 named in private", "Date: x\nCache-Control: private=\"foo, Bar\"\nFoo: 1\nBAR: 2\nC: 3",
            "Date: x\nCache-Control: private=\"foo, Bar\"\nC: 3"),
        Row(
            "§5.2.2.4 named in no-cache", "Date: x\nCache-Control: no-cache=foo\nFoo: 1",
            "Date: x\nCache-Control: no-cache=foo"),
        Row(
            "§5.2.2.7 named in both", "Date: x\nCache-Control: private=\"a\", no-cache=\"b\"\nA: 1\nB: 2",
            "Date: x\nCache-Control: private=\"a\", no-cache=\"b\""),
        Row(
            "§5.2.2.7 a cookie", "Date: x\nCache-Control: private=\"set-cookie\"\nSet-Cookie: a=b",
            "Date: x\nCache-Control: private=\"set-cookie\""),
        Row(
            "§5.2.2.4 named within the bound, not beyond it",
            "Date: x\nCache-Control: private=a, no-cache=\"\(sixtyFour)\"\nA: 1\nB: 2",
            "Date: x\nCache-Control: private=a, no-cache=\"\(sixtyFour)\"\nB: 2"),
        Row(
            "RFC 9213 §2.1 the same in a targeted field, in its order",
            "Date: x\nCDN-Cache-Control: no-cache=\"a\", private=\"\(sixtyFour)\"\nA: 1\nB: 2",
            "Date: x\nCDN-Cache-Control: no-cache=\"a\", private=\"\(sixtyFour)\"\nB: 2"),
        Row(
            "RFC 9213 §2.1 named in a targeted field",
            "Date: x\nCDN-Cache-Control: private=\"a\"\nCache-Control: private=\"b\"\nA: 1\nB: 2",
            "Date: x\nCDN-Cache-Control: private=\"a\"\nCache-Control: private=\"b\"\nB: 2"),
        Row(
            "§5.2 directives are passed on, whatever they mean to us", "Date: x\nCache-Control: foo, max-age=5, foo",
            "Date: x\nCache-Control: foo, max-age=5, foo"),
        Row("§5.5 Warning is passed on", "Date: x\nWarning: 110 - \"stale\"", "Date: x\nWarning: 110 - \"stale\""),
        Row("RFC 9110 §6.6.1 Date is added", "A: 1", "A: 1\nDate: Sun, 06 Nov 1994 08:49:37 GMT"),
    ]

    @Test(arguments: kept)
    func `all fields are stored except those that are not for every client`(row: Row<String>) {
        let block = head(row.fields)
        let stored = StoredFields.head(keeping: block.view, facts: facts(row.fields), policy: CachingPolicy())
        #expect(text(stored) == row.expected)
        let lines = ByteBuffer(capacity: 16)
        StoredFields.append(block.view, facts: facts(row.fields), policy: CachingPolicy(), to: lines)
        let (written, inBlock) = (String(lines.span), String(stored.bytes))
        #expect(written == inBlock)
    }

    static let arrived: [Row<String>] = [
        Row("no space", "A:1", "A: 1"), Row("several", "A:  1", "A: 1"), Row("behind the value", "A: 1 ", "A: 1"),
        Row("no value", "A:", "A: "),
        Row("some as they are to stand", "A: 1\r\nB:2\r\nC: 3\r\nD: 4", "A: 1\nB: 2\nC: 3\nD: 4"),
    ]

    @Test(arguments: arrived)
    func `lines are stored in one form, however they arrived`(row: Row<String>) {
        let message = ByteSlice("HTTP/1.1 200 OK\r\nDate: x\r\n" + row.fields + "\r\n\r\n")
        var parser = ResponseHeadParser()
        _ = try? parser.parse(message.span)
        let view = parser.view(in: message.span)
        let lines = ByteBuffer(capacity: 16)
        StoredFields.append(view, facts: facts(""), policy: CachingPolicy(), to: lines)
        let inBlock = StoredFields.head(keeping: view, facts: facts(""), policy: CachingPolicy())
        let expected = "Date: x\n" + row.expected
        #expect(text(HeadBlock(lines: lines.copied())) == expected)
        #expect(text(inBlock) == expected)
    }

    @Test func `a stored head reads like the received head`() {
        let block = head("Date: {0}\nConnection: x\nX: 1\nETag: \"a\"\nVary: Accept")
        let stored = StoredFields.head(
            keeping: block.view, facts: facts(""), policy: CachingPolicy(), dropping: FieldSet(.vary))
        let view = stored.view
        let tag = view.firstIndex(of: .etag).map { String(view.value(at: $0)) }
        let count = view.lines.count
        #expect(count == 2)
        #expect(tag == "\"a\"")
        #expect(!stored.present.contains(.vary))
        #expect(!stored.present.contains(.connection))
    }

    struct Update: Sendable, CustomTestStringConvertible {
        let clause: String, stored: String, update: String, expected: String

        init(_ clause: String, _ stored: String, _ update: String, _ expected: String) {
            (self.clause, self.stored, self.update, self.expected) = (clause, stored, update, expected)
        }

        var testDescription: String { "\(clause): \(stored) with \(update)" }
    }

    static let updates: [Update] = [
        Update("§3.2 replaced where it stands", "Date: a\nX: 1\nY: 2", "Date: b\nX: 3", "Date: b\nX: 3\nY: 2"),
        Update("§3.2 added", "Date: a\nX: 1", "Date: b\nZ: 3", "Date: b\nX: 1\nZ: 3"),
        Update("§3.2 names in any case", "Date: a\nx-foo: 1", "Date: b\nX-Foo: 2", "Date: b\nX-Foo: 2"),
        Update("§3.2 several by one", "Date: a\nX: 1\nY: 2\nX: 3", "Date: b\nX: 9", "Date: b\nX: 9\nY: 2"),
        Update("§3.2 one by several", "Date: a\nX: 1\nY: 2", "Date: b\nX: 8\nX: 9", "Date: b\nX: 8\nX: 9\nY: 2"),
        Update("§3.2 several added", "Date: a", "Date: b\nX: 8\nX: 9", "Date: b\nX: 8\nX: 9"),
        Update(
            "§3.2 Cache-Control", "Date: a\nCache-Control: max-age=1", "Date: b\nCache-Control: max-age=9",
            "Date: b\nCache-Control: max-age=9"),
        Update(
            "§3.2 Content-Type, since content is kept as received", "Date: a\nContent-Type: a/b",
            "Date: b\nContent-Type: c/d", "Date: b\nContent-Type: c/d"),
        Update("§3.2 ETag", "Date: a\nETag: \"a\"", "Date: b\nETag: W/\"a\"", "Date: b\nETag: W/\"a\""),
        Update(
            "§3.2 not Content-Length", "Date: a\nContent-Length: 5", "Date: b\nContent-Length: 0",
            "Date: b\nContent-Length: 5"),
        Update("§3.2 nor a new one", "Date: a", "Date: b\nContent-Length: 0", "Date: b"),
        Update(
            "RFC 9530 §2 not the digest of other content", "Date: a\nContent-Digest: d=:a:\nContent-MD5: a",
            "Date: b\nContent-Digest: d=:b:\nContent-MD5: b", "Date: b\nContent-Digest: d=:a:\nContent-MD5: a"),
        Update("RFC 9530 §2 nor a new one", "Date: a", "Date: b\nContent-Digest: d=:b:\nContent-MD5: b", "Date: b"),
        Update(
            "RFC 9530 §3 but that of the representation", "Date: a\nRepr-Digest: d=:a:\nDigest: a",
            "Date: b\nRepr-Digest: d=:b:\nDigest: b", "Date: b\nRepr-Digest: d=:b:\nDigest: b"),
        Update("§3.2 not Content-Range", "Date: a", "Date: b\nContent-Range: bytes 0-1/2", "Date: b"),
        Update(
            "§3.1 not Connection and what it names", "Date: a\nX: 1", "Date: b\nConnection: x\nX: 2", "Date: b\nX: 1"),
        Update("§3.1 not Transfer-Encoding", "Date: a", "Date: b\nTransfer-Encoding: chunked", "Date: b"),
        Update("§3.1 not Proxy-Authenticate", "Date: a", "Date: b\nProxy-Authenticate: Basic", "Date: b"),
        Update("§4.3.4 not Age, which counts anew", "Date: a", "Date: b\nAge: 5", "Date: b"),
        Update(
            "RFC 9110 §6.6.1 without Date, when it arrived", "Date: a\nX: 1", "Y: 2",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\nX: 1\nY: 2"),
        Update("§7.3 not Set-Cookie", "Date: a", "Date: b\nSet-Cookie: a=b", "Date: b"),
        Update(
            "§7.3 Set-Cookie with public", "Date: a", "Date: b\nCache-Control: public\nSet-Cookie: a=b",
            "Date: b\nCache-Control: public\nSet-Cookie: a=b"),
        Update(
            "§5.2.2.7 not what private names, old or new", "Date: a\nX: 1",
            "Date: b\nCache-Control: private=\"x\"\nX: 2", "Date: b\nCache-Control: private=\"x\""),
        Update(
            "§5.2.2.7 nor what the stored one's names", "Date: a\nCache-Control: private=\"x\"", "Date: b\nX: 2\nY: 3",
            "Date: b\nCache-Control: private=\"x\"\nY: 3"),
        Update(
            "§5.2.2.4 the same of no-cache", "Date: a\nCache-Control: no-cache=x", "Date: b\nX: 2",
            "Date: b\nCache-Control: no-cache=x"),
        Update(
            "§3.2 but directives of its own take their place", "Date: a\nCache-Control: private=\"x\"",
            "Date: b\nCache-Control: max-age=5\nX: 2", "Date: b\nCache-Control: max-age=5\nX: 2"),
        Update(
            "RFC 9213 §2.2 not those of a targeted field", "Date: a\nCDN-Cache-Control: private=\"x\"",
            "Date: b\nCache-Control: max-age=5\nX: 2",
            "Date: b\nCDN-Cache-Control: private=\"x\"\nCache-Control: max-age=5"),
        Update(
            "§5.2.2.7 a cookie it names", "Date: a\nCache-Control: public, private=\"set-cookie\"",
            "Date: b\nSet-Cookie: a=b", "Date: b\nCache-Control: public, private=\"set-cookie\""),
        Update(
            "§5.2 an unqualified one names nothing", "Date: a\nCache-Control: no-cache", "Date: b\nX: 2",
            "Date: b\nCache-Control: no-cache\nX: 2"),
    ]

    @Test(arguments: updates)
    func `a 304 updates stored fields`(row: Update) {
        let update = head(row.update)
        let head = Freshening.head(
            head(row.stored), updatedWith: update.view, facts: facts(row.update, status: 304), policy: CachingPolicy()
        )
        #expect(text(head) == row.expected)
    }

    @Test func `a freshened response has the age of its validation`() {
        // §4.3.4, §4.2.3
        let policy = CachingPolicy()
        let stored = head("Date: {0}\nCache-Control: max-age=60\nETag: \"a\"")
        let old = ResponseFacts(
            status: .ok, fields: stored.view, requestTime: arrival, responseTime: arrival, policy: policy)
        let later = arrival.after(100)
        let update = head("Date: {100}\nAge: 3\nETag: \"a\"")
        let updateFacts = ResponseFacts(
            status: .notModified, fields: update.view, requestTime: later, responseTime: later, policy: policy)
        let merged = Freshening.head(stored, updatedWith: update.view, facts: updateFacts, policy: policy)
        let new = ResponseFacts(
            freshened: old, head: merged.view, by: update.view, requestTime: later, responseTime: later, policy: policy
        )
        #expect(new.status == .ok)
        #expect(!old.isFresh(at: later))
        #expect(new.reuse(for: .none, at: later) == .fresh(age: 3, ttl: 57))
    }

    @Test func `a 304 may make a response private`() {
        let stored = head("Date: {0}\nCache-Control: max-age=60\nETag: \"a\"")
        let update = head("Date: {0}\nCache-Control: private\nETag: \"a\"")
        let merged = Freshening.head(
            stored, updatedWith: update.view, facts: facts("", status: 304), policy: CachingPolicy())
        let new = ResponseFacts(
            freshened: facts("Cache-Control: max-age=60"), head: merged.view, by: update.view,
            requestTime: arrival, responseTime: arrival, policy: CachingPolicy()
        )
        let verdict = new.storability(answering: .plainGet, answersTarget: false, policy: CachingPolicy())
        #expect(verdict == .doNotStore(.prohibited(.private)))
    }

    static let posts: [(String, Bool)] = [
        ("Content-Location: /a?b", true), ("Content-Location: http://example.com/a?b", true),
        ("Content-Location: ?b", true),
        ("Content-Location: /x", false), ("Content-Location: https://example.com/a?b", false), ("", false),
        ("Content-Location: /a?b\nContent-Location: /a?b", false),
    ]

    @Test(arguments: posts)
    func `a response to POST represents the target if Content-Location says so`(fields: String, expected: Bool) {
        // RFC 9110 §9.3.3
        let target = TargetURI(isSecure: false, authority: ByteSlice("example.com"), pathAndQuery: ByteSlice("/a?b"))
        let block = head(fields)
        let isForTarget = PostAnswer.isForTarget(block.view, target: target)
        #expect(isForTarget == expected)
    }
}
