import Bytes
import HTTPSemantics
import Testing

@Suite struct FieldNameTests {
    @Test func `every known field is recognised in any case`() {
        for field in KnownField.allCases where field != .other {
            let name = Array("\(field.wireName)".utf8)
            let asWritten = KnownField.recognise(name.span)
            let small = Array("\(field.wireName)".lowercased().utf8)
            let large = Array("\(field.wireName)".uppercased().utf8)
            let asSmall = KnownField.recognise(small.span)
            let asLarge = KnownField.recognise(large.span)
            #expect(asWritten == field && asSmall == field && asLarge == field, "\(field)")
            #expect(FieldSet(field).contains(field))
        }
    }

    @Test func `a name that differs in one byte is another field`() {
        for field in KnownField.allCases where field != .other {
            let name = Array("\(field.wireName)".utf8)
            for index in name.indices {
                for bit in [1, 2, 4, 8, 16, 64, 128] as [UInt8] {
                    var other = name
                    other[index] ^= bit
                    let found = KnownField.recognise(other.span)
                    #expect(found != field)
                }
                var underscored = name
                underscored[index] = UInt8(ascii: "_")
                let found = KnownField.recognise(underscored.span)
                #expect(found == .other)
            }
            let longer = KnownField.recognise((name + [0x78]).span)
            #expect(longer != field)
        }
        let empty = KnownField.recognise([UInt8]().span)
        #expect(empty == .other)
    }

    @Test func `methods are recognised in capitals only`() {
        for method in Method.allCases where method != .other {
            let name = Array("\(method.wireName)".utf8)
            let found = Method.recognise(name.span)
            let small = Method.recognise(Array("\(method.wireName)".lowercased().utf8).span)
            #expect(found == method && small == .other)
            #expect(!method.isSafe || method.isIdempotent)
        }
        #expect(Method.allCases.filter(\.isSafe) == [.get, .head, .options, .trace])
        #expect(Method.allCases.filter(\.isIdempotent) == [.get, .head, .put, .delete, .options, .trace])
    }
}
