import Bytes
import Testing

@testable import Redis

/// What the engine's bytes mean, however they are cut.
struct RESPParserTests {
    /// One line of a table: what comes, and what it is.
    struct Row: Sendable, CustomTestStringConvertible {
        let input: String
        let expected: String

        init(_ input: String, _ expected: String) { (self.input, self.expected) = (input, expected) }
        var testDescription: String { input.debugDescription }
    }

    static let valid = [
        Row("+OK\r\n", "+OK"),
        Row("+\r\n", "+"),
        Row("-ERR unknown command\r\n", "-ERR unknown command"),
        Row("!21\r\nSYNTAX invalid syntax\r\n", "-SYNTAX invalid syntax"),
        Row(":0\r\n:-7\r\n:+12\r\n", "0; -7; 12"),
        Row(":9223372036854775807\r\n:-9223372036854775808\r\n", "9223372036854775807; -9223372036854775808"),
        Row("$5\r\nhello\r\n", "\"hello\""),
        Row("$0\r\n\r\n", "\"\""),
        Row("$4\r\n\r\n\r\n\r\n", "\"\r\n\r\n\""),
        Row("$0005\r\nhello\r\n", "\"hello\""),
        Row("$-1\r\n*-1\r\n_\r\n", "null; null; null"),
        Row("#t\r\n#f\r\n", "true; false"),
        Row(",1.23\r\n,10\r\n,-0.5e-7\r\n,1E+6\r\n", "double 1.23; double 10; double -0.5e-7; double 1E+6"),
        Row(",inf\r\n,-inf\r\n,nan\r\n,-nan\r\n", "double inf; double -inf; double nan; double -nan"),
        Row("(3492890328409238509324850943850943825024385\r\n", "big 3492890328409238509324850943850943825024385"),
        Row("(-1\r\n", "big -1"),
        Row("=15\r\ntxt:Some string\r\n", "verbatim \"Some string\""),
        Row("=4\r\nmkd:\r\n", "verbatim \"\""),
        Row("*0\r\n", "[]"),
        Row("*3\r\n:1\r\n$1\r\na\r\n*1\r\n+b\r\n", "[1 \"a\" [+b]]"),
        Row("~2\r\n:1\r\n:2\r\n", "set[1 2]"),
        Row("~0\r\n%0\r\n", "set[]; map[]"),
        Row("%2\r\n+first\r\n:1\r\n+second\r\n*1\r\n_\r\n", "map[+first 1 +second [null]]"),
        Row(
            ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n$1\r\nv\r\n", "push[\"invalidate\" [\"k\"]]; \"v\""),
        Row(">2\r\n$10\r\ninvalidate\r\n_\r\n", "push[\"invalidate\" null]"),
        Row("|1\r\n+ttl\r\n:3600\r\n*2\r\n:1\r\n|0\r\n:2\r\n", "[1 2]"),
        Row("*1\r\n|1\r\n+a\r\n*2\r\n:8\r\n:9\r\n+x\r\n+y\r\n", "[+x]; +y"),
        Row("*2\r\n*0\r\n*1\r\n*0\r\n:5\r\n", "[[] [[]]]; 5"),
        Row("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "[[[[[[[[1]]]]]]]]"),
        Row("$5\r\nhel", ""), Row("$5\r\nhello\r", ""), Row("*2\r\n:1\r\n", ""), Row("+O", ""), Row("", ""),
        Row("|1\r\n+a\r\n:1\r\n", ""),
    ]

    static let invalid = [
        Row("HTTP/1.1 400 Bad Request\r\n", "error at 0: no value of RESP3 begins with 'H'"),
        Row("+OK\r\n\r\n", "+OK; error at 5: no value of RESP3 begins with byte 13"),
        Row("\u{ff}", "error at 0: no value of RESP3 begins with byte 255"),
        Row("+OK\n", "error at 3: a line must end with CR LF, and have no other CR"),
        Row("+\n", "error at 1: a line must end with CR LF, and have no other CR"),
        Row("+a\rb\r\n", "error at 5: a line must end with CR LF, and have no other CR"),
        Row(":\r\n", "error at 1: not a number of its kind"),
        Row(":-\r\n", "error at 1: not a number of its kind"),
        Row(":1x\r\n", "error at 1: not a number of its kind"),
        Row(":9223372036854775808\r\n", "error at 1: not a number of its kind"),
        Row(":-9223372036854775809\r\n", "error at 1: not a number of its kind"),
        Row("(1.5\r\n", "error at 1: not a number of its kind"),
        Row(",\r\n", "error at 1: not a number of its kind"),
        Row(",.5\r\n", "error at 1: not a number of its kind"),
        Row(",1.\r\n", "error at 1: not a number of its kind"),
        Row(",1e\r\n", "error at 1: not a number of its kind"),
        Row(",infinity\r\n", "error at 1: not a number of its kind"),
        Row("#true\r\n", "error at 1: a boolean must be t or f"),
        Row("#\r\n", "error at 1: a boolean must be t or f"),
        Row("_x\r\n", "error at 1: a null must be empty"),
        Row("$?\r\n", "error at 1: a value of unknown length"),
        Row("*?\r\n", "error at 1: a value of unknown length"),
        Row("$\r\n", "error at 1: a length must be a number"),
        Row("$-2\r\n", "error at 1: a length must be a number"),
        Row("$+2\r\n", "error at 1: a length must be a number"),
        Row("*-2\r\n", "error at 1: a length must be a number"),
        Row("%-1\r\n", "error at 1: a length must be a number"),
        Row("$5\r\nhelloworld", "error at 9: a text must be followed by CR LF"),
        Row("$5\r\nhello\rx", "error at 10: a text must be followed by CR LF"),
        Row("$67108865\r\n", "error at 1: a value with more than 67108864 bytes of text"),
        Row("$99999999999999999999999999\r\n", "error at 1: a value with more than 67108864 bytes of text"),
        Row("*1048577\r\n", "error at 1: a value with more than 1048576 values inside"),
        Row("%524289\r\n", "error at 1: a value with more than 1048576 values inside"),
        Row("|524288\r\n", "error at 1: a value with more than 1048576 values inside"),
        Row("*99999999999999999999999999\r\n", "error at 1: a value with more than 1048576 values inside"),
        Row("=3\r\ntxt\r\n", "error at 1: a verbatim text must begin with three bytes and a colon"),
        Row("=5\r\ntext:\r\n", "error at 4: a verbatim text must begin with three bytes and a colon"),
        Row(
            "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
            "error at 32: more than 8 values inside of each other"),
        Row("*1\r\n>1\r\n+a\r\n", "error at 4: a push message inside of a value"),
        Row("*1\r\n$1\r\naXX", "error at 9: a text must be followed by CR LF"),
    ]

    @Test(arguments: valid + invalid) func `bytes have one meaning, wherever they are cut`(row: Row) {
        let bytes = wire(row.input)
        #expect(values(of: bytes) == row.expected)
        #expect(values(of: bytes, cuts: Array(0..<bytes.count)) == row.expected)
        for first in 0..<max(1, bytes.count) {
            #expect(values(of: bytes, cuts: [first]) == row.expected, "cut at \(first)")
            for second in first..<bytes.count where bytes.count < 40 {
                #expect(values(of: bytes, cuts: [first, second]) == row.expected, "cut at \(first), \(second)")
            }
        }
    }

    @Test func `what a value may have is bounded, all that it contains together`() {
        var limits = RESPLimits()
        (limits.mostBytes, limits.mostElements, limits.mostLine) = (10, 6, 16)
        func read(_ text: String) -> String { values(of: wire(text), limits: limits) }
        #expect(read("*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n+1234567890\r\n") == "[\"hello\" \"world\"]; +1234567890")
        let tooManyBytes = "a value with more than 10 bytes of text"
        #expect(read("*2\r\n$5\r\nhello\r\n$6\r\n") == "error at 16: \(tooManyBytes)")
        #expect(read("*2\r\n$5\r\nhello\r\n+123456\r\n") == "error at 16: \(tooManyBytes)")
        #expect(read("|1\r\n+a\r\n$5\r\nhello\r\n$5\r\n") == "error at 20: \(tooManyBytes)")
        let tooMany = "a value with more than 6 values inside"
        #expect(read("*3\r\n*3\r\n_\r\n_\r\n_\r\n_\r\n_\r\n*6\r\n") == "[[null null null] null null]")
        #expect(read("*3\r\n*4\r\n") == "error at 5: \(tooMany)")
        #expect(read("%3\r\n%1\r\n") == "error at 5: \(tooMany)")
        #expect(read(String(repeating: "|0\r\n", count: 7)) == "error at 25: \(tooMany)")
        #expect(read("+12345678901\r\n") == "error at 1: \(tooManyBytes)")
        #expect(read("(1234567890123\r\n") == "error at 1: \(tooManyBytes)")
        #expect(read("(12345678901234\r\n") == "error at 16: a line of more than 16 bytes")
        #expect(read("(12345678901234567") == "error at 16: a line of more than 16 bytes")
        #expect(read("*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n") == "[]; []; []; []; []; []; []")
    }

    @Test func `an error is told again at each call, and no byte behind it is read`() {
        var parser = RESPParser()
        let input = ByteBuffer(capacity: 16)
        input.append("?+OK\r\n")
        for _ in 0..<2 {
            let error = #expect(throws: RESPSyntaxError.self) { _ = try parser.next(in: input) }
            #expect(error?.reason == .unknownType(0x3f) && error?.position == 0)
        }
        #expect(input.count == 6)
    }

    @Test func `a long text does not stay in the input, and is not searched`() throws {
        var parser = RESPParser()
        let input = ByteBuffer(capacity: 16)
        let (piece, pieces) = (ByteSlice(String(repeating: "\r\n$1\r\n:x", count: 8192)), 512)
        input.append("*1\r\n$\(piece.count * pieces)\r\n")
        for _ in 0..<pieces {
            input.append(piece)
            #expect(try parser.next(in: input) == nil)
            #expect(input.isEmpty)
        }
        input.append("\r\n")
        let value = try parser.next(in: input)
        guard case .array(let values)? = value, case .bulk(let text)? = values.first else {
            Issue.record("not a text")
            return
        }
        #expect(text.count == piece.count * pieces && input.capacity < 1 << 18)
        #expect(text[text.count - piece.count..<text.count] == piece)
    }
}

extension ByteBuffer {
    fileprivate func append(_ text: String) { append(string: text) }
}
