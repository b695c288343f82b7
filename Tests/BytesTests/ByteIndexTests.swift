import Bytes
import Repeatable
import Testing

struct ByteIndexTests {
    private static func index(_ texts: [String]) -> ByteIndex {
        ByteIndex(texts.map { (RunningHash.of(Array($0.utf8)), Array($0.utf8)) })
    }

    private static func found(_ text: String, in index: ByteIndex) -> [Int] {
        let bytes = ByteSlice(text)
        var look = index.look(for: RunningHash.of(Array(text.utf8)))
        var found: [Int] = []
        while let number = index.next(&look) {
            if index.isEqual(number, to: bytes.span) { found.append(number) }
        }
        return found
    }

    @Test func `a look-up returns the numbers of all equal entries in order, and no others`() {
        let index = Self.index(["a", "", "bc", "a", "cb"])
        #expect(Self.found("a", in: index) == [0, 3])
        #expect(Self.found("", in: index) == [1])
        #expect(Self.found("bc", in: index) == [2])
        #expect(Self.found("cb", in: index) == [4])
        #expect(Self.found("b", in: index).isEmpty)
        #expect(Self.index([]).isEmpty && Self.found("a", in: Self.index([])).isEmpty)
    }

    @Test func `a comparison that ignores case treats capital and small letters as equal`() {
        let index = Self.index(["a.example"])
        for (text, isSame) in [("A.Example", true), ("a.example", true), ("a-example", false), ("a.exampl", false)] {
            let bytes = ByteSlice(text)
            let isEqual = index.isEqualIgnoringCase(0, to: bytes.span)
            #expect(isEqual == isSame, "\(text)")
        }
    }

    /// The place of an entry is a matter of its hash: names that people give are no worse than any.
    @Test(arguments: [1, 10, 1_000, 10_000, 100_000])
    func `a look-up probes few places, whatever the number of entries`(count: Int) {
        let names = (0..<count).map { "www\($0).shop-\($0 % 7).example.com" }
        let index = Self.index(names)
        #expect(index.longestLook <= 64)
        for number in stride(from: 0, to: count, by: max(1, count / 100)) {
            #expect(Self.found(names[number], in: index) == [number])
        }
    }
}
