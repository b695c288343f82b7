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
                // No head has control characters, except HTAB in values.
                let confused = (UInt8(0x20)...0xff).filter { byte in
                    guard byte.lowercasedASCII != name[index].lowercasedASCII else { return false }
                    var other = name
                    other[index] = byte
                    return KnownField.recognise(other.span) == field
                }
                #expect(confused.isEmpty, "\(field)")
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
        for method in Method.allCases where method.isNamed {
            let name = Array("\(method.wireName)".utf8)
            let found = Method.recognise(name.span)
            let small = Method.recognise(Array("\(method.wireName)".lowercased().utf8).span)
            #expect(found == method && small == .other)
            #expect(!method.isSafe || method.isIdempotent)
        }
        #expect(Method.allCases.filter(\.isSafe) == [.get, .head, .options, .trace, .otherSafe])
        #expect(
            Method.allCases.filter(\.isIdempotent)
                == [.get, .head, .options, .put, .delete, .trace, .otherSafe, .otherIdempotent])
    }

    /// As it was on 26 November 2026, with `QUERY` of RFC 10008: name, safe, idempotent.
    static let registry = """
        ACL no yes, BASELINE-CONTROL no yes, BIND no yes, CHECKIN no yes, CHECKOUT no yes, CONNECT no no, COPY no yes,
        DELETE no yes, GET yes yes, HEAD yes yes, LABEL no yes, LINK no yes, LOCK no no, MERGE no yes,
        MKACTIVITY no yes, MKCALENDAR no yes, MKCOL no yes, MKREDIRECTREF no yes, MKWORKSPACE no yes, MOVE no yes,
        OPTIONS yes yes, ORDERPATCH no yes, PATCH no no, POST no no, PRI yes yes, PROPFIND yes yes, PROPPATCH no yes,
        PUT no yes, QUERY yes yes, REBIND no yes, REPORT yes yes, SEARCH yes yes, TRACE yes yes, UNBIND no yes,
        UNCHECKOUT no yes, UNLINK no yes, UNLOCK no yes, UPDATE no yes, UPDATEREDIRECTREF no yes,
        VERSION-CONTROL no yes
        """

    @Test func `a registered method is safe and idempotent as registered, any other is neither`() {
        var names = 0
        for entry in Self.registry.split(whereSeparator: { $0 == "," || $0 == "\n" }) {
            let words = entry.split(separator: " ").map(String.init)
            guard words.count == 3 else { continue }
            names += 1
            let method = Method.recognise(Array(words[0].utf8).span)
            #expect(method.isSafe == (words[1] == "yes") && method.isIdempotent == (words[2] == "yes"), "\(words[0])")
        }
        #expect(names == 40)
        for name in ["query", "QUERIES", "QUER", "PURGE", "BREW", "M-SEARCH", "PROPFINd", "*"] {
            let method = Method.recognise(Array(name.utf8).span)
            #expect(method == .other, "\(name)")
        }
    }
}
