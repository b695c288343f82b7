import Bytes
import Repeatable
import Testing

@testable import HTTPSemantics

/// Names that an operator lists are found as by a walk over the list, in a time that does not depend on its length.
@Suite(.timeLimit(.minutes(10))) struct NameIndexTests {
    private static let names = [
        "sid", "SID", "s", "", "page", "Page", "my_page", "my.page", "my page", "a[b]", "a[", "pa%67e", "wordpress_",
        "wordpress_logged_in_", "x", "id",
    ]
    private static let asked =
        names + [
            "si", "sids", "wordpress_logged_in_7", "wordpres", "WORDPRESS_x", "a", "a[b][c]", "b", "%", "%7", "ı",
            "page=",
            "PAGE", "my%5fpage", " page", "+page",
        ]

    private static func list(_ seed: UInt64) -> [CookiePattern] {
        var random = SeededGenerator(seed: seed)
        // Beyond those that are walked; what fills up is asked for by nobody.
        let some = names.shuffled(using: &random).prefix(Int(seed % 12)).map {
            CookiePattern(ByteSlice($0), isPrefix: Bool.random(using: &random))
        }
        return some.filter { !($0.isPrefix && $0.name.isEmpty) || seed % 4 == 0 }
    }

    private static let fill = (0..<20).map { CookiePattern(ByteSlice("filled\($0)"), isPrefix: $0 % 2 == 0) }

    @Test(arguments: Rounds.seeds(60))
    func `the index finds a cookie as a linear search does`(seed: UInt64) throws {
        let list = Self.list(seed)
        let (walked, indexed) = (list, list + Self.fill)
        let index = try #require(NameIndex(indexed.map { ($0.name, $0.isPrefix) }, reading: .leniently))
        for name in Self.asked {
            let bytes = ByteSlice(name)
            let isOne = walked.contains { pattern in
                pattern.isPrefix
                    ? LenientName.mayBegin(bytes.span, with: pattern.name.span)
                    : LenientName.mayBeSame(bytes.span, pattern.name.span)
            }
            let isFound = index.matches(bytes.span)
            #expect(isFound == isOne, "\(name) of \(list.map { String($0.name) + ($0.isPrefix ? "*" : "") })")
        }
    }

    @Test(arguments: Rounds.seeds(30))
    func `a byte-exact index finds a name by its bytes alone`(seed: UInt64) throws {
        let list = Self.list(seed)
        let index = try #require(NameIndex((list + Self.fill).map { ($0.name, $0.isPrefix) }, reading: .exactly))
        for name in Self.asked {
            let bytes = ByteSlice(name)
            let isOne = list.contains { pattern in
                let start = bytes.span.extracting(first: pattern.isPrefix ? pattern.name.count : bytes.count)
                return start.isEqual(to: pattern.name.span)
            }
            let isFound = index.matches(bytes.span)
            #expect(isFound == isOne, "\(name)")
        }
    }

    @Test func `a key is the same with few listed names and with many`() {
        var (few, many) = (KeyPolicy(), KeyPolicy())
        let filled = (0..<10_000).map { ParameterPattern(ByteSlice("filled\($0)"), isPrefix: false) }
        for target in ["/a?x=1&y=2&X=3", "/a?%78=1&y", "/a?y=1&x=2;z", "/a?", "/a?&&x", "/a?x[1]=2&y"] {
            for makes in [KeyPolicy.Query.keeping, KeyPolicy.Query.dropping] {
                few.query = makes(["x"])
                many.query = makes(filled + ["x"])
                #expect(Self.key(few, target) == Self.key(many, target), "\(target)")
            }
        }
    }

    private static func key(_ policy: KeyPolicy, _ target: String) -> String {
        let (bytes, buffer) = (ByteSlice(target), ByteBuffer(capacity: 64))
        let block = HeadBlock(lines: .empty)
        policy.append(pathAndQuery: bytes.span, of: block.view, to: buffer)
        return String(buffer.copied())
    }

    @Test func `ten thousand names take as few probes as one`() throws {
        let list = (0..<10_000).map { (ByteSlice("cookie_\($0)_name"), $0 % 2 == 0) }
        let index = try #require(NameIndex(list, reading: .leniently))
        #expect(index.longestLook <= 64)
    }
}
