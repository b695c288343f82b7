import Bytes
import HTTPSemantics
import Testing

/// The members of `Connection` or `Cache-Control` in a request with these lines.
private func members(_ lines: String, _ field: KnownField, _ quoting: ListQuoting) throws -> [String] {
    let message = wire("HTTP/1.1 200 OK\r\n" + lines.replacing("|", with: "\r\n") + "\r\n")
    var parser = ResponseHeadParser()
    _ = try parser.parse(message.span)
    var result: [String] = []
    var list = ListIterator(parser.view(in: message.span), field, quoting: quoting)
    while let member = list.next() { result.append(plain(member)) }
    return result
}

@Suite struct ListIteratorTests {
    @Test(
        arguments: [
            ("A: b|", []), ("Via: a|", ["a"]), ("Via: a, b ,\tc|", ["a", "b", "c"]), ("Via: ,, a,,b, |", ["a", "b"]),
            ("Via:|", []), ("Via: ,|", []), ("Via: a|X: y|Via:|via: b, c|", ["a", "b", "c"]),
            ("Via: \"a, b\", c|", ["\"a", "b\"", "c"]), ("Via: \"a, close|", ["\"a", "close"]),
        ] as [(String, [String])]) func `every comma separates tokens`(lines: String, expected: [String]) throws
    {
        let result = try members(lines, .via, .none)
        #expect(result == expected)
    }

    @Test(
        arguments: [
            ("Via: \"a, b\", c|", ["\"a, b\"", "c"]), ("Via: a=\"x\\\", y\", c|", ["a=\"x\\\", y\"", "c"]),
            ("Via: \"a, b|Via: c|", ["\"a, b", "c"]), ("Via: \"a\\|Via: c|", ["\"a\\", "c"]),
            ("Via: a\\,b|", ["a\\", "b"]),
            ("Via: \"\\\\\",b|", ["\"\\\\\"", "b"]),
        ] as [(String, [String])]) func `a comma in quotes separates nothing`(lines: String, expected: [String]) throws
    {
        let result = try members(lines, .via, .quotedStrings)
        #expect(result == expected)
    }
}
