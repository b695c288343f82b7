import Console
import Testing

@Suite struct JSONValueTests {
    @Test(
        arguments: [
            ("{}", .object([:])), (" [ ] \n", .array([])), ("-1.5e2", .number(-150)), ("null", .null),
            (
                #"{"a": [true, false, {"b": "c"}]}"#,
                .object(["a": .array([.truth(true), .truth(false), .object(["b": .string("c")])])])
            ),
            (#""a\"\\\/\n\u0041\ud83d\ude00""#, .string("a\"\\/\nA\u{1F600}")), ("\"é\"", .string("é")),
        ] as [(String, JSONValue)])
    func `valid JSON is read`(text: String, value: JSONValue) { #expect(JSONValue(text) == value) }

    @Test(arguments: [
        "", "{", "[1,]", "{\"a\"}", "{\"a\": 1,}", "tru", "1 2", "\"a", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\n\"",
        "-",
        String(repeating: "[", count: 100_000),
    ])
    func `invalid JSON is refused`(text: String) { #expect(JSONValue(text) == nil) }

    @Test func `members are found by name`() {
        let value = JSONValue(#"{"a": {"b": [1, "x"]}}"#)
        #expect(value?["a"]?["b"]?.elements.first?.number == 1 && value?["a"]?["b"]?.elements.last?.string == "x")
        #expect(value?["b"] == nil && value?["a"]?["b"]?["c"] == nil && value?.elements == [])
    }
}
