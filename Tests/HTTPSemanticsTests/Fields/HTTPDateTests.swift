import Bytes
import HTTPSemantics
import Repeatable
import Testing

@Suite struct HTTPDateTests {
    /// 2026-11-21 00:00:00.
    static let now: Int64 = 1_795_219_200

    @Test(
        arguments: [
            // The three forms (RFC 9110 §5.6.7)
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Sun Nov 16 08:49:37 1994", 784_975_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            // Either case (RFC 9111 §4.2), and a day's name that is wrong
            ("sun, 06 nov 1994 08:49:37 gmt", 784_111_777),
            ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            // Two digits: at most 50 years ahead
            ("Saturday, 21-Nov-76 00:00:00 GMT", 3_373_142_400),
            ("Sunday, 21-Nov-76 00:00:01 GMT", 217_382_401),
            ("Monday, 01-Jan-77 00:00:00 GMT", 220_924_800),
            ("Friday, 31-Dec-99 00:00:00 GMT", 946_598_400),
            // Not dates
            ("Sun, 6 Nov 1994 08:49:37 GMT", nil), ("Sun, 06 Nov 94 08:49:37 GMT", nil),
            ("Sun, 06 Nov 1994 08:49:37 UTC", nil), ("Sun, 06 Nov 1994 08:49:37", nil),
            ("Sun, 06 Nov 1994 08:49:37 GMT ", nil), (" Sun, 06 Nov 1994 08:49:37 GMT", nil),
            ("Sun, 06 Nov 1994 24:00:00 GMT", nil), ("Sun, 06 Nov 1994 08:60:37 GMT", nil),
            ("Sun, 06 Nov 1994 08:49:60 GMT", nil), ("Sun, 06 Nov 1994 08:49:61 GMT", nil),
            ("Sun, 31 Nov 1994 08:49:37 GMT", nil), ("Sun, 00 Nov 1994 08:49:37 GMT", nil),
            ("Wed, 29 Feb 2023 12:00:00 GMT", nil), ("Thu, 29 Feb 1900 12:00:00 GMT", nil),
            ("Sun, 06 Foo 1994 08:49:37 GMT", nil), ("Sunday, 06 Nov 1994 08:49:37 GMT", nil),
            ("Sun, 06-Nov-94 08:49:37 GMT", nil), ("Sun Nov 6 08:49:37 1994", nil),
            ("Xun, 06 Nov 1994 08:49:37 GMT", nil),
            ("0", nil), ("-1", nil), ("", nil), ("Sun", nil), ("Sunday", nil),
        ] as [(String, Int64?)]) func `a date is parsed in its three forms and no other`(text: String, seconds: Int64?)
    {
        let result = HTTPDate.parse(wire(text).span, now: Self.now)
        #expect(result == seconds)
    }

    @Test func `a written date is parsed back`() {
        var generator = SeededGenerator(ofTest: 7)
        let buffer = ByteBuffer(capacity: 32)
        for _ in 0..<2000 * Rounds.count {
            let seconds = Int64.random(in: -62_167_219_200...253_402_300_799, using: &generator)
            buffer.removeAll()
            HTTPDate.append(seconds, to: buffer)
            let read = HTTPDate.parse(buffer.span, now: Self.now)
            #expect(read == seconds && buffer.count == HTTPDate.length)
        }
        buffer.removeAll()
        HTTPDate.append(784_111_777, to: buffer)
        let example = plain(buffer.span)
        #expect(example == "Sun, 06 Nov 1994 08:49:37 GMT")
        buffer.removeAll()
        HTTPDate.append(.max, to: buffer)
        #expect(buffer.count == HTTPDate.length)
    }

    /// In capitals as the grammar has them a date is told at one look, in small letters by the reader of all forms.
    @Test func `a damaged date has the same value in small letters`() {
        var generator = SeededGenerator(ofTest: 8)
        let (buffer, small) = (ByteBuffer(capacity: 32), ByteBuffer(capacity: 32))
        var accepted = 0
        for _ in 0..<30 * Rounds.count {
            buffer.removeAll()
            HTTPDate.append(Int64.random(in: -62_167_219_200...253_402_300_799, using: &generator), to: buffer)
            let date = plain(buffer.span)
            for place in 0..<HTTPDate.length {
                for spoiler in "0369:, -gGxX" {
                    var letters = Array(date)
                    letters[place] = spoiler
                    let bytes = wire(String(letters))
                    small.removeAll()
                    small.append(lowercasing: bytes.span)
                    let (one, other) = (
                        HTTPDate.parse(bytes.span, now: Self.now), HTTPDate.parse(small.span, now: Self.now)
                    )
                    if one != other {
                        Issue.record("\(String(letters)): \(String(describing: one)), \(String(describing: other))")
                    }
                    if one != nil { accepted += 1 }
                }
            }
        }
        #expect(accepted > 1000)
    }
}
