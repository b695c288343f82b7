import Bytes
import HTTPSemantics
import RouteTesting
import Testing

@testable import Proxy

/// The requests that plug-ins send, and what they mean by them. Written down from the plug-ins' sources.
@Suite struct PurgeMethodTests {
    struct Shape: CustomTestStringConvertible, Sendable {
        let request: String
        /// What is purged; `nil` if the request is refused.
        let meant: String?
        var isSoft = false

        init(_ request: String, _ meant: String?, isSoft: Bool = false) {
            (self.request, self.meant, self.isSoft) = (request, meant, isSoft)
        }

        var testDescription: String { request.replacing("\n", with: " | ") }
    }

    static let urls = [
        // curl, and Drupal's purgers of URLs.
        Shape("PURGE /a?b=c", "http://a.example/a?b=c"),
        Shape("PURGE http://b.example/a", "http://b.example/a"),
        Shape("PURGE http://b.example", "http://b.example"),
        Shape("PURGE /a\nHost: b.example:8080", "http://b.example:8080/a"),
        Shape("PURGE /a\nHost: b.example:443", "https://b.example:443/a"),
        Shape("PURGE /a\nSoft-Purge: 1", "http://a.example/a", isSoft: true),
        Shape("PURGE /a\nSoft-Purge: 0", "http://a.example/a"),
        // Proxy Cache Purge and WP Rocket: one page, and the whole site or a blog of several.
        Shape("PURGE /2026/11/hello/\nX-Purge-Method: default", "http://a.example/2026/11/hello/"),
        Shape("PURGE /.*\nX-Purge-Method: regex", "prefix http://a.example/"),
        Shape("PURGE /blog/.*\nX-Purge-Method: Regex", "prefix http://a.example/blog/"),
        Shape("PURGE /wp-content/cache/\nX-Purge-Method: regex", "prefix http://a.example/wp-content/cache/"),
        Shape("PURGE /a\nX-Purge-Method: exact", "http://a.example/a"),
        Shape("PURGE /.*\nX-Purge-Method: exact", "http://a.example/.*"),
        // W3 Total Cache: no field says that it is a pattern.
        Shape("PURGE /.*\nUser-Agent: W3TC\nConnection: close", "prefix http://a.example/"),
        Shape("PURGE /.*?a", "http://a.example/.*?a"),
    ]
    static let tags = [
        Shape("PURGE /\nCache-Tag: product 42, b", "tag product 42|tag b"),
        Shape("PURGE /\nSurrogate-Key: a b", "tag a|tag b"),
        Shape("PURGE /\nxkey: a,b", "tag a,b"),
        Shape("PURGE /\nxkey-purge: a b\nxkey-purge: c", "tag a|tag b|tag c"),
        Shape("PURGE /\nxkey-softpurge: a b", "tag a|tag b", isSoft: true),
        Shape("PURGE /\nSurrogate-Key: a\nSoft-Purge: 1", "tag a", isSoft: true),
        // Drupal.
        Shape("PURGE /tags\nCache-Tags: node:5 node_list", "tag node:5|tag node_list"),
        Shape("PURGE /\nPurge-Cache-Tags: config:user.role.anonymous", "tag config:user.role.anonymous"),
        // Proxy Cache Purge, with tags.
        Shape("PURGE /\nX-Purge-Method: tags\nX-Cache-Tags-Pattern: site-1|p-5|t-2", "tag site-1|tag p-5|tag t-2"),
        // Magento: what changed, and 'flush the cache'.
        Shape("PURGE /\nX-Magento-Tags-Pattern: ((^|,)cat_p_1(,|$))|((^|,)cat_p(,|$))", "tag cat_p_1|tag cat_p"),
        Shape("PURGE /\nX-Magento-Tags-Pattern: ((^|,)cms_b_footer.links(,|$))", "tag cms_b_footer.links"),
        Shape("PURGE /\nX-Magento-Tags-Pattern: .*", "all"),
    ]
    static let refused = [
        "PURGE /\nSoft-Purge: yes", "PURGE /\nSurrogate-Key:",
        "PURGE /blog.*\nX-Purge-Method: regex", "PURGE /a\nX-Purge-Method: regex",
        "PURGE /(a,b)/.*\nX-Purge-Method: regex", "PURGE /*/a/.*", "PURGE /a/?b\nX-Purge-Method: regex",
        "PURGE /\nX-Purge-Method: tags", "PURGE /\nX-Purge-Method: ban",
        "PURGE /\nX-Cache-Tags-Pattern: p-5.*", "PURGE /\nX-Cache-Tags-Pattern: a||b",
        "PURGE /\nX-Magento-Tags-Pattern: *", "PURGE /\nX-Magento-Tags-Pattern: cat_p_1",
        "PURGE /\nX-Magento-Tags-Pattern: ((^|,)cat_p_.*(,|$))", "PURGE /\nX-Magento-Tags-Pattern: ((^|,)(,|$))",
        "PURGE /\nX-Magento-Tags-Pattern: ((^|,)a(,|$))((^|,)b(,|$))",
        "PURGE /\nX-Magento-Tags-Pattern: ((^|,)a(,|$))|", "PURGE /\nX-Magento-Tags-Pattern:",
        "PURGE /\nSurrogate-Key: \(String(repeating: "a", count: 1025))",
    ].map { Shape($0, nil) }

    @Test(arguments: urls + tags + refused)
    func `what a plug-in sends is understood as it means it, and all else is refused`(_ shape: Shape) throws {
        let parsed = try ParsedHead(shape.request)
        let isMethod = PurgeMethod.isMethod(of: parsed.head, parsed.fields.view)
        #expect(isMethod)
        let purge: PurgeMethod
        do throws(SyntheticResponse) {
            purge = try PurgeMethod(parsed.head, parsed.fields.view)
        } catch {
            #expect(shape.meant == nil && error.status == .badRequest)
            return
        }
        let request = purge.request
        let lines =
            request.isOfEverything
            ? ["all"] : request.tags.map { "tag \(String($0))" }
        let count = lines.count + request.urls.count + request.prefixes.count
        #expect(request.isSoft == shape.isSoft)
        if lines.isEmpty {
            #expect(count == 2, "in both schemes")
            #expect(purge.summary == "\(shape.meant ?? "") (PURGE)")
        } else {
            #expect(request.urls.isEmpty && request.prefixes.isEmpty)
            #expect(lines.joined(separator: "|") == shape.meant)
        }
    }

    @Test(arguments: ["purge /", "PURGES /", "GET /", "PROPFIND /"])
    func `another method is none`(_ request: String) throws {
        let parsed = try ParsedHead(request)
        let isMethod = PurgeMethod.isMethod(of: parsed.head, parsed.fields.view)
        #expect(!isMethod)
    }
}
