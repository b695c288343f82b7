import Bytes
import HTTPSemantics
import RouteTesting
import Testing

@testable import Routing

@Suite struct `A template` {
    private func written(
        _ text: String, _ request: String, client: String = "192.0.2.1", status: UInt16 = 200
    ) throws -> String {
        let (template, parsed, buffer) = (try Template(text), try ParsedHead(request), ByteBuffer(capacity: 16))
        let (fields, address) = (parsed.fields, ByteSlice(client))
        let parts = RequestParts(
            parsed.head, fields.view, .https, client: address.span, madeID: RequestID(10, 1 << 63),
            status: Status(status),
            cache: "hit")
        template.write(parts, to: buffer)
        return String(buffer.span)
    }

    @Test(arguments: [
        ("https://${host}${target}", "https://a.example/b?c=d"), ("${path}|${query}", "/b|c=d"),
        ("${scheme} ${client} ${request-id}", "https 192.0.2.1 000000000000000a8000000000000000"),
        ("${status} ${cache}", "200 hit"),
        ("constant", "constant"), ("$host $5 $$ {host} $", "$host $5 $$ {host} $"), ("a${host}", "aa.example"),
        ("$${host}}", "$a.example}"), ("", ""),
    ])
    func `a variable stands for its part of the request`(text: String, expected: String) throws {
        #expect(try written(text, "GET /b?c=d\nHost: a.example:8080") == expected)
        #expect(try Template(text).text == text)
        #expect(try Template(text).isConstant == !text.contains("${"))
    }

    @Test(arguments: [
        ("GET http://a.example", "/"), ("GET http://a.example?x", "/?x"), ("GET /?", "/?"), ("GET /%7e\"", "/%7e\""),
    ])
    func `a target is one word of visible ASCII`(request: String, target: String) throws {
        #expect(try written("${target}", request) == target)
    }

    @Test(arguments: [
        ("a-Z_0.9", true), (String(repeating: "x", count: 128), true), (String(repeating: "x", count: 129), false),
        ("", false), ("a b", false), ("a\"b", false), ("é", false), ("a\nX-Request-Id: b", false),
    ])
    func `a client's identifier counts only in its syntax, and once`(id: String, counts: Bool) throws {
        let made = "000000000000000a8000000000000000"
        #expect(try written("${request-id}", "GET /\nX-Request-Id: \(id)") == (counts ? id : made))
    }

    @Test func `an address keeps its brackets, and bytes that a field may not have are encoded`() throws {
        #expect(try written("${host}", "GET /\nHost: [::1]:80") == "[::1]")
        #expect(try written("${client}", "GET /", client: "a b\r\n\u{7F}%") == "a%20b%0D%0A%7F%")
    }

    @Test func `a name that is none is told`() {
        #expect(throws: Template.Mistake.unknown("hots")) { _ = try Template("a${hots}") }
        #expect(throws: Template.Mistake.unknown("")) { _ = try Template("${}") }
        #expect(throws: Template.Mistake.unclosed) { _ = try Template("${host") }
        #expect(throws: Template.Mistake.unknown("status")) {
            _ = try Template("${status}", allowing: Template.Variable.ofRequests)
        }
    }
}
