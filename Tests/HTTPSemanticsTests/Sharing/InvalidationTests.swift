import Bytes
import HTTPSemantics
import Testing

/// RFC 9111 §4.4, RFC 9875: what a change makes unusable.
struct InvalidationTests {
    static let methods: [(HTTPSemantics.Method, UInt16, Bool)] = [
        (.post, 200, true), (.put, 200, true), (.delete, 204, true), (.patch, 200, true), (.other, 200, true),
        (.otherIdempotent, 207, true), (.otherIdempotent, 423, false), (.otherSafe, 200, false),
        (.otherSafe, 207, false),
        (.connect, 200, true),
        (.post, 201, true), (.post, 299, true), (.post, 302, true), (.put, 303, true), (.delete, 399, true),
        (.post, 400, false), (.put, 409, false), (.delete, 404, false), (.post, 500, false), (.other, 503, false),
        (.post, 100, false),
        (.get, 200, false), (.head, 200, false), (.options, 200, false), (.trace, 200, false), (.get, 302, false),
    ]

    @Test(arguments: methods)
    func `an unsafe request with a response other than an error invalidates its target`(
        method: HTTPSemantics.Method, status: UInt16, expected: Bool
    ) {
        #expect(Invalidation.applies(method: method, status: Status(status)) == expected)
    }

    static let references: [(String, String?)] = [
        ("/b", "/b"), ("/b?c", "/b?c"), ("http://example.com/b", "/b"), ("HTTP://EXAMPLE.com:80/b", "/b"),
        ("http://example.com", "/"), ("http://example.com?q", "/?q"), ("//example.com/b", "/b"),
        ("//example.com:80", "/"),
        ("b", "/a/b"), ("./b", "/a/b"), ("../b", "/b"), ("../../../b", "/b"), ("b/../c", "/a/c"), ("b/.", "/a/b/"),
        ("..", "/"),
        (".", "/a/"), ("?z", "/a/x?z"), ("", "/a/x?y"), ("#f", "/a/x?y"), ("/b#f", "/b"), ("/b/./c/../d", "/b/d"),
        ("/b//c", "/b//c"),
        ("/b?c/../d", "/b?c/../d"), ("/b?http://other/", "/b?http://other/"), ("b:c", nil),
        ("http://other.com/b", nil), ("https://example.com/b", nil), ("http://example.com:81/b", nil),
        ("//other.com/b", nil),
        ("http://sub.example.com/b", nil), ("http://user@example.com/b", nil), ("ftp://example.com/b", nil),
        ("mailto:a@b", nil),
        ("http:/b", nil), ("/a b", nil), ("http://example.com.evil.org/", nil),
    ]

    @Test(arguments: references)
    func `a reference is resolved, and only within the origin`(reference: String, expected: String?) {
        // RFC 3986 §5.2, RFC 9110 §4.3.1
        let target = TargetURI(isSecure: false, authority: ByteSlice("example.com"), pathAndQuery: ByteSlice("/a/x?y"))
        let resolved = target.sameOriginTarget(of: Array(reference.utf8).span)
        #expect(resolved.map { String($0) } == expected)
    }

    @Test func `https has its own default port`() {
        let target = TargetURI(isSecure: true, authority: ByteSlice("example.com:443"), pathAndQuery: ByteSlice("/"))
        let same = target.sameOriginTarget(of: Array("https://example.com/b".utf8).span)
        let other = target.sameOriginTarget(of: Array("http://example.com:443/b".utf8).span)
        #expect(same.map { String($0) } == "/b")
        #expect(other == nil)
    }

    static let related: [Row<[String]>] = [
        Row("§4.4 none", "", []),
        Row("§4.4 Location", "Location: /b", ["/b"]),
        Row("§4.4 Content-Location", "Content-Location: /b", ["/b"]),
        Row("§4.4 both", "Location: /b\nContent-Location: /c", ["/b", "/c"]),
        Row("§4.4 both the same", "Location: /b\nContent-Location: /b", ["/b"]),
        Row("§4.4 over several lines", "Content-Location: /b\nContent-Location: /c", ["/b", "/c"]),
        Row("§4.4 another origin", "Location: http://other.com/b\nContent-Location: /c", ["/c"]),
        Row(
            "§4.4 https is another origin",
            "Location: https://example.com/b\nContent-Location: https://example.com:443/c", []),
    ]

    @Test(arguments: related)
    func `other targets of the origin that the response names are invalidated too`(row: Row<[String]>) {
        let target = TargetURI(isSecure: false, authority: ByteSlice("example.com"), pathAndQuery: ByteSlice("/a"))
        let block = head(row.fields)
        let targets = Invalidation.relatedTargets(of: block.view, base: target)
        #expect(targets.map { String($0) } == row.expected)
    }

    static let groups: [Row<[String]>] = [
        Row("RFC 9875 §2 none", "", []),
        Row("RFC 9875 §2 one", "Cache-Groups: \"scripts\"", ["scripts"]),
        Row("RFC 9875 §2 several", "Cache-Groups: \"a\", \"b\"", ["a", "b"]),
        Row("RFC 9875 §2 over several lines", "Cache-Groups: \"a\"\nCache-Groups: \"b\"", ["a", "b"]),
        Row("RFC 9875 §2 parameters are ignored", "Cache-Groups: \"a\";x=1", ["a"]),
        Row("RFC 9875 §2.1 they have a case", "Cache-Groups: \"a\", \"A\"", ["a", "A"]),
        Row("RFC 9875 §2 each once", "Cache-Groups: \"a\", \"a\"", ["a"]),
        Row("RFC 9651 §1.1 a token makes it wrong", "Cache-Groups: \"a\", b", []),
        Row("RFC 9651 §4.2 it does not parse", "Cache-Groups: \"a\",", []),
        Row(
            "as long as is read", "Cache-Groups: \"\(String(repeating: "x", count: 8190))\"",
            [String(repeating: "x", count: 8190)]),
        Row("longer", "Cache-Groups: \"\(String(repeating: "x", count: 8191))\"", []),
    ]

    @Test(arguments: groups)
    func `a response belongs to the groups that it names`(row: Row<[String]>) {
        let block = head(row.fields)
        let groups = CacheGroups.names(in: block.view)
        let invalidation = head(row.fields.replacing("Cache-Groups", with: "Cache-Group-Invalidation"))
        let invalidated = CacheGroups.invalidated(by: invalidation.view, method: .post, status: .ok)
        let bySafeMethod = CacheGroups.invalidated(by: invalidation.view, method: .get, status: .ok)
        let byFailure = CacheGroups.invalidated(by: invalidation.view, method: .post, status: Status(500))
        #expect(groups == row.expected)
        #expect(invalidated == row.expected)
        // RFC 9875 §3: ignored on answers to safe methods.
        #expect(bySafeMethod.isEmpty)
        #expect(byFailure.isEmpty)
    }

    @Test func `at least 32 groups of 32 characters are read`() {
        // RFC 9875 §2
        let names = (0..<32).map { String(repeating: "x", count: 30) + String($0 + 10) }
        let block = head("Cache-Groups: " + names.map { "\"\($0)\"" }.joined(separator: ", "))
        let groups = CacheGroups.names(in: block.view)
        #expect(groups == names)
    }
}
