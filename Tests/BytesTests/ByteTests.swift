import Bytes
import Repeatable
import Testing

@Suite struct ByteSearchTests {
    @Test func `a byte is found at every place and from every start`() {
        for length in 0..<40 {
            for place in 0..<max(1, length) {
                var text = [UInt8](repeating: 0xff, count: length)
                if place < length { text[place] = 0xfe }
                for start in 0...length + 1 {
                    let found = text.span.firstIndex(of: 0xfe, from: start)
                    #expect(found == (place < length && start <= place ? place : nil))
                }
            }
        }
    }

    /// The trick of searching eight bytes at once is known to mark neighbours of a match wrongly.
    @Test(arguments: [UInt8(0), 1, 0x7f, 0x80, 0xff])
    func `neighbouring values are not mistaken for the byte`(_ byte: UInt8) {
        for other in [byte &+ 1, byte &- 1, byte ^ 0x80] {
            let text: [UInt8] = [other, other, other, byte, other, other, other, other, other]
            let found = text.span.firstIndex(of: byte)
            let none = [UInt8](repeating: other, count: 9).span.firstIndex(of: byte)
            #expect(found == 3 && none == nil)
        }
    }

    @Test func `slices are equal only if every byte is equal`() {
        for length in 0..<20 {
            let text = pattern(0..<length)
            let same = text.span.isEqual(to: pattern(0..<length).span)
            #expect(same)
            for place in 0..<length {
                var other = text
                other[place] ^= 0x80
                let equal = text.span.isEqual(to: other.span)
                #expect(!equal)
            }
        }
    }

    @Test func `only ASCII letters are changed to small letters`() {
        for byte in UInt8.min...UInt8.max {
            let isCapital = (0x41...0x5a).contains(byte)
            #expect(byte.lowercasedASCII == (isCapital ? byte + 32 : byte))
        }
        let text = Array("ConTent-Type".utf8)
        let (same, other) = (
            text.span.isEqualIgnoringCase(to: "content-type"), text.span.isEqualIgnoringCase(to: "content-typo")
        )
        #expect(same && !other)
    }

    @Test func `a comparison ignores the case of ASCII letters and nothing else`() {
        for length in 1..<20 {
            for byte in UInt8.min...UInt8.max {
                var (left, right) = (pattern(0..<length), pattern(0..<length))
                left[length / 2] = byte
                for other in [byte, byte ^ 0x20, byte ^ 0x80, byte ^ 0xa0, byte &+ 1] {
                    right[length / 2] = other
                    let equal = left.span.isEqualIgnoringCase(to: right.span)
                    #expect(
                        equal == (byte.lowercasedASCII == other.lowercasedASCII), "\(byte) and \(other) in \(length)")
                }
            }
        }
    }

    /// Eight bytes at once, with neighbours that borrow from each other.
    @Test func `the first invalid byte is found at every place, whatever its neighbours`() {
        let others: [UInt8] = [0x61, 0x2d, 0x09, 0x20, 0x21, 0x2f, 0x39, 0x7e, 0x7f, 0x80, 0xff]
        let tokens = Set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        let names = Set("!$&'()*+,-.;=_~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        for byte in UInt8.min...UInt8.max {
            for other in others {
                for place in [0, 1, 6, 7, 8, 9, 15, 16, 20] {
                    var text = [UInt8](repeating: other, count: 21)
                    text[place] = byte
                    for start in [0, place, min(place + 1, text.count)] {
                        let value = text.span.firstIndexOutsideFieldValue(from: start)
                        #expect(value == text[start...].firstIndex { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7f })
                        let token = text.span.firstIndexOutsideToken(from: start)
                        #expect(token == text[start...].firstIndex { !tokens.contains($0) })
                        let small = text.span.firstIndexOutsideLowercaseToken(from: start)
                        #expect(
                            small == text[start...].firstIndex { !tokens.contains($0) || (0x41...0x5a).contains($0) })
                        let name = text.span.firstIndexOutsideRegisteredName(from: start)
                        #expect(name == text[start...].firstIndex { !names.contains($0) })
                        let quoted = text.span.firstIndexOutsideQuotes(from: start, printableFrom: 0x21)
                        #expect(
                            quoted == text[start...].firstIndex { $0 < 0x21 || $0 > 0x7e || $0 == 0x22 || $0 == 0x5c })
                        let target = text.span.firstIndexOutsideTarget(from: start)
                        #expect(target == text[start...].firstIndex { $0 < 0x21 || $0 > 0x7e || $0 == 0x23 })
                    }
                }
            }
        }
    }

    @Test func `a plain name consists of letters, digits and hyphens`() {
        let plain = Set("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-".utf8)
        for byte in UInt8.min...UInt8.max {
            for length in 1...17 {
                for place in 0..<length {
                    var name = [UInt8](repeating: 0x61, count: length)
                    name[place] = byte
                    let isPlain = name.span.isPlainName
                    #expect(isPlain == plain.contains(byte), "\(byte) at \(place) of \(length)")
                }
            }
        }
    }

    @Test(arguments: [("", ""), (" ", ""), ("\t a b \t", "a b"), ("a", "a"), ("\r a", "\r a")])
    func `optional white space is trimmed at both ends and nowhere else`(_ text: String, _ trimmed: String) {
        let all = Array(text.utf8)
        let result = bytes(all.span.trimmingOptionalWhitespace())
        #expect(result == Array(trimmed.utf8))
    }
}

@Suite struct ByteBufferTests {
    @Test(arguments: [
        0, 1, 9, 10, 99, 100, 101, 909, 999, 1000, 9999, 10_000, 12_345, 1_000_001, UInt64.max / 10, UInt64.max,
    ])
    func `numbers are written as Swift writes them`(_ number: UInt64) {
        let buffer = ByteBuffer(capacity: 16)
        buffer.append(decimal: number)
        buffer.append(0x20)
        buffer.append(hexadecimal: number)
        #expect(String(buffer.span) == "\(number) \(String(number, radix: 16))")
    }

    @Test(arguments: 1...20)
    func `numbers of any length are written as Swift writes them`(_ digits: Int) {
        var generator = SeededGenerator(ofTest: UInt64(digits))
        let below = digits < 20 ? (0..<digits).reduce(UInt64(1)) { power, _ in power * 10 } : UInt64.max
        for _ in 0..<2000 * Rounds.count {
            let number = UInt64.random(in: 0..<below, using: &generator)
            let width = Int.random(in: 0...24, using: &generator)
            let buffer = ByteBuffer(capacity: 16)
            buffer.append(decimal: number, width: width)
            let plain = String(number)
            let expected = String(repeating: "0", count: max(0, width - plain.count)) + plain
            guard String(buffer.span) == expected else {
                Issue.record("\(number), \(width) digits: \(String(buffer.span))")
                return
            }
        }
    }

    @Test(arguments: [
        (0, "0.000000"), (1, "0.000001"), (999_999, "0.999999"), (1_000_000, "1.000000"), (9_876_543, "9.876543"),
        (10_000_000, "10.000000"), (123_456_000_007, "123456.000007"), (UInt64.max, "18446744073709.551615"),
    ])
    func `microseconds are written as seconds`(_ microseconds: UInt64, _ expected: String) {
        let buffer = ByteBuffer(capacity: 1)
        buffer.appendSeconds(microseconds: microseconds)
        #expect(String(buffer.span) == expected)
    }

    @Test(arguments: [
        (0, 1, "0"), (0, 3, "000"), (7, 3, "007"), (1000, 3, "1000"), (5, 25, "0000000000000000000000005"),
    ])
    func `a number is padded to the requested width`(_ number: UInt64, _ width: Int, _ expected: String) {
        let buffer = ByteBuffer(capacity: 1)
        buffer.append(decimal: number, width: width)
        #expect(String(buffer.span) == expected)
    }

    @Test func `capital letters are appended as small letters`() {
        let buffer = ByteBuffer(capacity: 1)
        buffer.append(lowercasing: Array("WWW.Example.org:80@[`{".utf8).span)
        #expect(String(buffer.span) == "www.example.org:80@[`{")
    }

    @Test func `a negative number is written with its sign`() {
        let buffer = ByteBuffer(capacity: 1)
        buffer.append(decimal: Int.min)
        #expect(String(buffer.span) == "\(Int.min)")
    }

    @Test(arguments: Rounds.seeds(30))
    func `a buffer has the same content as an array after any changes`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let buffer = ByteBuffer(capacity: Int.random(in: 0...64, using: &random))
        var model: [UInt8] = []
        for _ in 0..<400 {
            switch Int.random(in: 0..<7, using: &random) {
            case 0...2:
                let more = pattern(0..<Int.random(in: 0...50, using: &random))
                buffer.append(more.span)
                model += more
            case 3:
                buffer.append(7)
                model.append(7)
            case 4:
                let count = Int.random(in: 0...model.count, using: &random)
                buffer.consume(count)
                model.removeFirst(count)
            case 5:
                let count = Int.random(in: model.count / 2...model.count, using: &random)
                buffer.truncate(to: count)
                model.removeLast(model.count - count)
            default:
                buffer.reserve(Int.random(in: 0...200, using: &random))
            }
            #expect(bytes(buffer.span) == model)
            #expect(buffer.count == model.count)
        }
        let copy = buffer.copied()
        buffer.removeAll()
        #expect(bytes([copy]) == model && buffer.isEmpty)
    }
}

@Suite struct ByteSliceTests {
    @Test func `a slice of a slice has the right range and shares the memory`() {
        let slice = ByteSlice("0123456789")
        let part = slice[2..<8][1..<3]
        #expect(String(part) == "34")
        #expect(part.chunk.isSame(as: slice.chunk))
        #expect(part == ByteSlice("34"))
        #expect(slice[4..<4].isEmpty && ByteSlice("").isEmpty)
    }
}

@Suite struct KeyedHashTests {
    /// From an implementation of others: `PYTHONHASHSEED=0 python3.11 -c 'print(hash(bytes(range(n))))'`.
    @Test(
        arguments: [
            (1, 0x68a9_1412_8e01_e473), (7, 0x2f09_8ab0_c751_325a), (8, 0xead4_11e6_7ebe_2eea),
            (9, 0x7592_7f9d_9512_4362),
            (15, 0xf30e_b725_bb91_c9ea), (16, 0x8972_1884_33a5_c5b7), (63, 0x385d_3e39_e5f3_7359),
        ] as [(Int, UInt64)])
    func `the hash is SipHash-1-3`(_ length: Int, _ expected: UInt64) {
        let text = (0..<length).map { UInt8($0) }
        let hash = KeyedHash(k0: 0, k1: 0).hash(text.span)
        #expect(hash == expected)
    }

    @Test func `different keys give different hashes`() {
        let text = Array("http://example.org/".utf8)
        let hashes = (0..<100).map { KeyedHash(k0: $0, k1: 0).hash(text.span) }
        #expect(Set(hashes).count == 100)
    }
}

@Suite struct MemoryBudgetTests {
    @Test func `reservations never exceed the budget`() {
        let budget = MemoryBudget(limit: 100)
        #expect(budget.reserve(100))
        #expect(!budget.reserve(1))
        #expect(budget.reserve(0))
        budget.release(40)
        #expect(!budget.reserve(41) && budget.reserve(40))
        #expect(budget.used == 100)
    }
}

@Suite struct BufferStockTests {
    @Test func `a returned buffer is lent again empty, unless its size differs`() {
        let stock = BufferStock(bufferCapacity: 64, most: 1)
        let buffer = stock.lend()
        buffer.append("left over")
        stock.takeBack(buffer)
        let again = stock.lend()
        #expect(again === buffer && again.isEmpty)
        again.reserve(1000)
        stock.takeBack(again)
        #expect(stock.lend() !== again)
        let small = ByteBuffer(capacity: 32)
        stock.takeBack(small)
        #expect(stock.lend() !== small)
    }
}
