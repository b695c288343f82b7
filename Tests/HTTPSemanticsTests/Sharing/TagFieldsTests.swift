import Bytes
import HTTPSemantics
import Testing

/// The tags that the fields of a response name.
@Suite struct TagFieldsTests {
    static let usual: [Row<[String]>] = [
        Row("none", "X-Tag: a", []),
        Row("commas", "Cache-Tag: a,b c ,, d", ["a", "b c", "d"]),
        Row("commas", "X-Magento-Tags: cat_p_1,cat_c", ["cat_p_1", "cat_c"]),
        Row("spaces", "Surrogate-Key: a b,c   d", ["a", "b,c", "d"]),
        Row("spaces", "xkey: a\tb", ["a", "b"]),
        Row("in any case", "CACHE-TAG: A", ["A"]),
        Row("several lines", "xkey: a\nCache-Tag: b\nXkey: a", ["a", "b", "a"]),
        Row("empty", "Cache-Tag: \nxkey: ,", [","]),
        Row("others of that length", "X-Foo-Bar: a\nabcd: b", []),
    ]

    private func tags(_ fields: TagFields, _ head: HeadBlock) -> [String] {
        var tags: [String] = []
        let view = head.view
        fields.forEachTag(in: view) { tags.append(String(view.bytes.extracting($0))) }
        let occur = fields.occur(in: view)
        #expect(occur || tags.isEmpty)
        return tags
    }

    @Test(arguments: usual) func `a response has the tags that it names`(row: Row<[String]>) {
        #expect(tags(.usual, head(row.fields)) == row.expected)
    }

    @Test func `other fields name tags if they are set`() {
        let long = String(repeating: "x", count: 80)
        let fields = TagFields([ByteSlice("x-my-tags"), ByteSlice(long)])
        #expect(tags(fields, head("Cache-Tag: a\nX-My-Tags: b c\n\(long): d")) == ["b", "c", "d"])
        let none = TagFields([])
        #expect(tags(none, head("Cache-Tag: a")) == [])
    }
}
