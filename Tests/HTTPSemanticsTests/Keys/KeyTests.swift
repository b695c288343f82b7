import Bytes
import HTTPSemantics
import Testing

/// What makes two requests ask for the same: RFC 9111 §2 and the No-Vary-Search draft.
struct KeyTests {
    static let configs: [Row<NoVarySearch.Parameters>] = [
        Row("parse: none", "", .allBut([])),
        Row("parse: params", "No-Vary-Search: params=(\"a\")", .allBut(["a"])),
        Row("parse: params, empty", "No-Vary-Search: params=()", .allBut([])),
        Row("parse: except", "No-Vary-Search: except=(\"x\")", .only(["x"])),
        Row("parse: except, empty", "No-Vary-Search: except=()", .only([])),
        Row("parse: unknown keys are ignored", "No-Vary-Search: params=(\"a\"), foo=1", .allBut(["a"])),
        Row("parse: over several lines", "No-Vary-Search: params=(\"a\")\nNo-Vary-Search: key-order", .allBut(["a"])),
        Row(
            "parse: key-order is no boolean", "No-Vary-Search: key-order=\"not a boolean\", params=(\"a\")", .allBut([])
        ),
        Row("parse: params is a string", "No-Vary-Search: params=\"not an inner list\"", .allBut([])),
        Row("parse: params holds a token", "No-Vary-Search: params=(not-a-string)", .allBut([])),
        Row("parse: params is false", "No-Vary-Search: params=?0", .allBut([])),
        Row("parse: params is true", "No-Vary-Search: params=?1", .allBut([])),
        Row("parse: both, one true", "No-Vary-Search: params=?1, except=(\"x\")", .allBut([])),
        Row("parse: both", "No-Vary-Search: params=(\"a\"), except=(\"x\")", .allBut([])),
        Row("parse: both, empty", "No-Vary-Search: params=(), except=()", .allBut([])),
        Row("parse: except is a string", "No-Vary-Search: except=\"not an inner list\"", .allBut([])),
        Row("parse: except holds a token", "No-Vary-Search: except=(not-a-string)", .allBut([])),
        Row("parse: except is true", "No-Vary-Search: except=?1", .allBut([])),
        Row("parse: it does not parse", "No-Vary-Search: params=(\"a\"", .allBut([])),
        Row("parse a key: percent and plus", "No-Vary-Search: params=(\"%C3%A9+%E6%B0%97\")", .allBut(["é 気"])),
    ]

    @Test(arguments: configs)
    func `No-Vary-Search is parsed strictly`(row: Row<NoVarySearch.Parameters>) {
        let block = head(row.fields)
        let config = NoVarySearch(block.view)
        #expect(config.parameters == row.expected)
    }

    static let orders: [(String, Bool)] = [
        ("", true), ("No-Vary-Search: key-order", false), ("No-Vary-Search: key-order=?1", false),
        ("No-Vary-Search: key-order=?0", true),
        ("No-Vary-Search: except=(\"x\"), key-order", false), ("No-Vary-Search: params=(\"x\")", true),
        ("No-Vary-Search: key-order, params=(\"a\"), except=(\"b\")", true),
        ("No-Vary-Search: key-order=1", true), ("No-Vary-Search: key-order=(\"a\")", true),
    ]

    @Test(arguments: orders)
    func `order matters unless No-Vary-Search says otherwise`(fields: String, matters: Bool) {
        let block = head(fields)
        let config = NoVarySearch(block.view)
        #expect(config.orderMatters == matters)
    }

    static let queries: [(String, String?, String?, Bool)] = [
        ("", "a=1", "a=1", true), ("", "a=1&b", "b&a=1", false), ("", nil, "", false), ("", "a=b&&&c", "a=b&c=", false),
        ("key-order", nil, "", true), ("key-order", "a=x", "%61=%78", true), ("key-order", "a=é", "a=%C3%A9", true),
        ("key-order", "a=%f6", "a=%ef%bf%bd", true), ("key-order", "a=x&&&&", "a=x", true),
        ("key-order", "a=", "a", true),
        ("key-order", "a=%20", "a= &", true), ("key-order", "a=+", "a= &", true),
        ("key-order", "a=1&b=2", "b=2&a=1", true),
        ("key-order", "a=1&a=2", "a=2&a=1", false), ("key-order", "a=1", "a=2", false),
        ("key-order", "a=1", "a=1&b=2", false),
        ("key-order", "a%3D=1", "a==1", false), ("key-order", "a=1%26b=2", "a=1&b=2", false),
        ("key-order", "a=%2", "a=%252", true),
        ("params=(\"utm\")", "a=1&utm=2", "a=1", true), ("params=(\"utm\")", "utm=2", nil, true),
        ("params=(\"utm\")", "a=1&utm=2", "a=1&utm=3&utm=4", true), ("params=(\"utm\")", "a=1&UTM=2", "a=1", false),
        ("params=(\"utm\")", "a=1&b=2", "b=2&a=1", false), ("params=(\"utm\")", "%75tm=2", nil, true),
        ("params=(\"é 気\")", "a=1", "a=1", true),
        ("params=(\"%C3%A9+%E6%B0%97\")", "%C3%A9%20気=3", "%C3%A9+%E6%B0%97=4", true),
        ("except=(\"id\")", "id=1&x=2", "y=3&id=1", true), ("except=(\"id\")", "id=1", "id=2", false),
        ("except=(\"id\")", "x=2", nil, true), ("except=()", "a=1", "b=2", true), ("except=()", nil, "b=2", true),
        ("key-order, except=(\"a\" \"b\")", "a=1&b=2&c", "c=9&b=2&a=1", true),
        ("params=()", "a=1", "a=1", true), ("params=()", "a", "a=", false),
        // With more than an origin may read, none is left out, and none moves.
        ("params=(\"x\")", String(repeating: "x&", count: 255) + "page=2", "page=2", true),
        ("params=(\"x\")", String(repeating: "x&", count: 256) + "page=2", "page=2", false),
        ("params=(\"x\")", String(repeating: "&", count: 256) + "page=2", "page=2", false),
        ("except=(\"page\")", String(repeating: "x&", count: 256) + "page=2", "page=2", false),
        ("key-order", String(repeating: "x&", count: 255) + "a", "a&" + String(repeating: "x&", count: 255), true),
        ("key-order", String(repeating: "x&", count: 256) + "a", "a&" + String(repeating: "x&", count: 256), false),
        ("key-order", String(repeating: "x&", count: 300), String(repeating: "x&", count: 300), true),
        ("key-order", String(repeating: "x=&", count: 256) + "&", String(repeating: "x=&", count: 256), false),
    ]

    @Test(arguments: queries)
    func `queries are equivalent as the draft says`(config: String, left: String?, right: String?, expected: Bool) {
        let block = head("No-Vary-Search: \(config)")
        let search = NoVarySearch(block.view)
        let first = left.map { ByteSlice($0) }, second = right.map { ByteSlice($0) }
        #expect(search.areEquivalent(first, second) == expected)
        #expect(search.areEquivalent(second, first) == expected)
        if !search.isDefault { #expect((search.canonicalQuery(first) == search.canonicalQuery(second)) == expected) }
    }

    static func policy(_ change: (inout KeyPolicy) -> Void) -> KeyPolicy {
        var policy = KeyPolicy()
        change(&policy)
        return policy
    }

    static let keys: [(String, KeyPolicy, String, String)] = [
        ("as sent", KeyPolicy(), "/a/../b?x=1&&y", "/a/../b?x=1&&y"),
        ("no query", policy { $0.query = .dropped }, "/a", "/a"),
        ("dropped", policy { $0.query = .dropped }, "/a?x=1&y=2", "/a"),
        ("kept", policy { $0.query = .keeping(["x"]) }, "/a?y=2&x=1&x&xx=3", "/a?x=1&x"),
        (
            "kept: what an origin decodes to it", policy { $0.query = .keeping(["page"]) },
            "/a?pa%67e=9&x=1", "/a?pa%67e=9"
        ),
        ("kept: in another case", policy { $0.query = .keeping(["page"]) }, "/a?Page=9", "/a?Page=9"),
        (
            "kept: as an array", policy { $0.query = .keeping(["page"]) },
            "/a?page%5B%5D=9&page[a]=8&pages=1",
            "/a?page%5B%5D=9&page[a]=8"
        ),
        (
            "kept: what PHP folds to it", policy { $0.query = .keeping(["my_page"]) },
            "/a?my.page=1&+my+page=2&my%20page%00x=3&mypage=4&my-page=5", "/a?my.page=1&+my+page=2&my%20page%00x=3"
        ),
        (
            "kept: what may be several", policy { $0.query = .keeping(["page"]) }, "/a?x=1;page=9&y=2",
            "/a?x=1;page=9"
        ),
        (
            "kept: brackets that are no index", policy { $0.query = .keeping(["my_page"]) },
            "/a?my[page=1&my%5Bpage=2&[page]=3&page]=4&a[b]=5&a[b=6&%u0070=7",
            "/a?my[page=1&my%5Bpage=2&[page]=3&page]=4&a[b=6&%u0070=7"
        ),
        (
            "as sent: more than an origin may read", policy { $0.query = .keeping(["page"]) },
            "/a?" + String(repeating: "x&", count: 256) + "page=2",
            "/a?" + String(repeating: "x&", count: 256) + "page=2"
        ),
        (
            "just as many as are looked at", policy { $0.query = .keeping(["page"]) },
            "/a?" + String(repeating: "x&", count: 255) + "page=2", "/a?page=2"
        ),
        (
            "not sorted with brackets that are no index", policy { $0.sortsQuery = true },
            "/a?my_page=1&my[page=2&a=3", "/a?my_page=1&my[page=2&a=3"
        ),
        (
            "left out, unless it may be several", policy { $0.query = .dropping(["x"]) },
            "/a?x=1;page=9&x=2",
            "/a?x=1;page=9"
        ),
        (
            "sorted, names that may be one in their order", policy { $0.sortsQuery = true }, "/a?pa%67e=1&page=2&a=3",
            "/a?a=3&pa%67e=1&page=2"
        ),
        (
            "sorted by names as they are read", policy { $0.sortsQuery = true }, "/a?b=1&%41=2&a.b=3&A_a=4&a[x]=5&=6",
            "/a?=6&%41=2&a[x]=5&A_a=4&a.b=3&b=1"
        ),
        ("not sorted where one may be several", policy { $0.sortsQuery = true }, "/a?b=1;c=2&a=3", "/a?b=1;c=2&a=3"),
        (
            "left out: all that begin so, byte for byte", policy { $0.query = .dropping(["utm_*", "x"]) },
            "/a?utm_source=1&utm_=2&utm=3&UTM_id=4&u%74m_id=5&x=6&xx=7&utm_a[b]=8&utm_c;d=9",
            "/a?utm=3&UTM_id=4&u%74m_id=5&xx=7&utm_c;d=9"
        ),
        (
            "kept: all that begin so to some origin", policy { $0.query = .keeping(["my_*", "x"]) },
            "/a?my_page=1&MY.a=2&my=3&m%79_b=4&x=5&xx=6&my_c[]=7", "/a?my_page=1&MY.a=2&m%79_b=4&x=5&my_c[]=7"
        ),
        ("none kept", policy { $0.query = .keeping(["z"]) }, "/a?y=2", "/a"),
        ("left out", policy { $0.query = .dropping(["x"]) }, "/a?x=1&y=2&x", "/a?y=2"),
        ("names have a case", policy { $0.query = .dropping(["x"]) }, "/a?X=1", "/a?X=1"),
        ("names as sent", policy { $0.query = .dropping(["x"]) }, "/a?%78=1", "/a?%78=1"),
        ("sorted", policy { $0.sortsQuery = true }, "/a?b=1&a=2", "/a?a=2&b=1"),
        ("equal names keep their order", policy { $0.sortsQuery = true }, "/a?b=2&a=9&b=1", "/a?a=9&b=2&b=1"),
        ("a longer name behind its beginning", policy { $0.sortsQuery = true }, "/a?ab=1&a=2", "/a?a=2&ab=1"),
        (
            "sorted and left out",
            policy {
                $0.sortsQuery = true; $0.query = .dropping(["u"])
            }, "/a?c&u=1&b", "/a?b&c"
        ),
    ]

    @Test(arguments: keys)
    func `the query is in the key as the route says`(
        clause: String, policy: KeyPolicy, target: String, expected: String
    ) {
        let request = head("")
        let key = written { policy.append(pathAndQuery: Array(target.utf8).span, of: request.view, to: $0) }
        #expect(key == expected)
    }

    static let partitions: [(KeyPolicy, String, String, isSame: Bool)] = [
        (KeyPolicy(), "X: 1", "X: 2", true),
        (policy { $0.fields = [ByteSlice("x")] }, "X: 1", "X: 2", false),
        (policy { $0.fields = [ByteSlice("x")] }, "X: 1", "x: 1\nY: 2", true),
        (policy { $0.fields = [ByteSlice("x")] }, "X:", "", false),
        (policy { $0.fields = [ByteSlice("x")] }, "X: 1\nX: 2", "X: 1,2", false),
        (policy { $0.fields = [ByteSlice("x")] }, "X: 1\nX: 2", "x: 1\nx: 2", true),
        (policy { $0.fields = [ByteSlice("x")] }, "X: 1\nX:", "X: 1", false),
        (policy { $0.fields = [ByteSlice("x"), ByteSlice("y")] }, "X: 1", "Y: 1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=1; t=2", "Cookie: t=3; s=1", true),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=1", "Cookie: s=2", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=1", "Cookie: S=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=", "Cookie: t=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: xs=1", "", true),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s", "", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s", "Cookie: s=", true),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=1; s=2", "Cookie: s=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=1; s=2", "Cookie: s=1; s=3", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=1; s=2", "Cookie: s=2; s=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=1; t=5; s=2", "Cookie: s=1\nCookie: s=2", true),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=; s=", "Cookie: s=", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s =1", "", false),
        (policy { $0.cookies = [ByteSlice("s"), ByteSlice("t")] }, "Cookie: s=1", "Cookie: t=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: a=\"; s=1; b=\"", "Cookie: s=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: a=\"; s=1; b=\"", "Cookie: a=\"; s=1; b=\"", true),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: a=\"x\\\"; s=1; b=\\\"\"", "Cookie: s=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: a=\"\\\"\"; s=1", "Cookie: s=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: a=\"\nCookie: s=1", "Cookie: a=\", s=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s=1; a=\"", "Cookie: s=1", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: a=\"x, \\\"y\\\"\"; s=1", "Cookie: s=1; b=\"\"", true),
        (policy { $0.cookies = [ByteSlice("a_b")] }, "Cookie: a.b=1", "", false),
        (policy { $0.cookies = [ByteSlice("a_b")] }, "Cookie: a.b=1", "Cookie: a_b=1", false),
        (policy { $0.cookies = [ByteSlice("a_b")] }, "Cookie: a.b=1; a_b=2", "Cookie: a_b=1; a.b=2", false),
        (policy { $0.cookies = [ByteSlice("a_b")] }, "Cookie: a.b=1; c=3", "Cookie: c=4; a.b=1", true),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: s[x]=1", "", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: %73=1", "", false),
        (policy { $0.cookies = [ByteSlice("a_b")] }, "Cookie: a[b=1", "", false),
        (policy { $0.cookies = [ByteSlice("s")] }, "Cookie: t=1; a[b=1", "Cookie: a[b=1; t=2", true),
        (
            policy { $0.cookies = [ByteSlice("s")] }, "Cookie: " + String(repeating: "t=1;", count: 200) + "a[b=1; t=1",
            "Cookie: a[b=2" + String(repeating: ";t=1", count: 200), false
        ),
        (
            policy { $0.cookies = [ByteSlice("s")] }, "Cookie: " + String(repeating: "t=1;", count: 255) + "a[b=1",
            "Cookie: a[b=1", true
        ),
        (
            policy { $0.cookies = [ByteSlice("s")] }, "Cookie: " + String(repeating: "a;", count: 256) + "s=1",
            "Cookie: s=1", false
        ),
    ]

    static let aliases: [(String, String, isSame: Bool)] = [
        ("X_Tenant: 1", "", false), ("X_Tenant: 1", "X-Tenant: 1", false),
        ("X-Tenant: 2\nX_Tenant: 1", "X-Tenant: 2", false),
        ("X.Tenant: 1", "X_Tenant: 1", false), ("X_Tenant: 1", "x_tenant: 1", true), ("X_Tenants: 1", "", true),
        ("X_Tenant: 1", "X_Tenant: 2", false),
        ("X_Tenant: 1\nX_Tenant: 2", "X_Tenant: 1", false),
    ]

    @Test(arguments: aliases)
    func `fields that origins may confuse with a key field are in the key, if forwarded`(
        left: String, right: String, isSame: Bool
    ) {
        let first = head(left), second = head(right), target = Array("/a".utf8)
        var policy = KeyPolicy()
        policy.fields = [ByteSlice("x-tenant")]
        policy.countsAliases = true
        let one = written { policy.append(pathAndQuery: target.span, of: first.view, to: $0) }
        let two = written { policy.append(pathAndQuery: target.span, of: second.view, to: $0) }
        #expect((one == two) == isSame)
    }

    @Test(arguments: partitions)
    func `selected fields and cookies are in the key`(policy: KeyPolicy, left: String, right: String, isSame: Bool) {
        let first = head(left), second = head(right), target = Array("/a".utf8)
        let one = written { policy.append(pathAndQuery: target.span, of: first.view, to: $0) }
        let two = written { policy.append(pathAndQuery: target.span, of: second.view, to: $0) }
        #expect((one == two) == isSame)
    }
}
