import Testing
import YAML

@Suite struct `A YAML text` {
    /// A node in brackets and braces, with the places of its scalars.
    private func shown(_ node: Node?) -> String {
        switch node {
        case nil: "nothing"
        case .scalar(let scalar):
            "\(scalar.isPlain ? scalar.string : "'\(scalar.string)'")@\(scalar.mark.line):\(scalar.mark.column)"
        case .list(let list): "[" + list.items.map(shown).joined(separator: " ") + "]"
        case .mapping(let mapping):
            "{" + mapping.pairs.map { shown($0.key) + "=" + shown($0.value) }.joined(separator: " ") + "}"
        }
    }

    private func outcome(_ text: String) -> String {
        do throws(ParseError) {
            return shown(try Node.parse(text))
        } catch {
            return "\(error.mark.line):\(error.mark.column) \(error.problem)"
        }
    }

    @Test(arguments: [
        ("", "nothing"),
        ("# a comment\n", "nothing"),
        ("a: 1\nb:\n  - x\n  - 'y z'\n", "{a@1:1=1@1:4 b@2:1=[x@3:5 'y z'@4:5]}"),
        ("{a: [1, {b: }], ü: é, c: d}", "{a@1:2=[1@1:6 {b@1:10=@1:13}] ü@1:17=é@1:20 c@1:23=d@1:26}"),
        ("a: 1\na: 2\n", "{a@1:1=1@1:4 a@2:1=2@2:4}"),
        ("a: |\n  x\n  y\n", "{a@1:1='x\ny\n'@1:4}"),
        ("a: &n [1, 2]\nb: *n\n", "{a@1:1=[1@1:8 2@1:11] b@2:1=[1@1:8 2@1:11]}"),
        ("--- !!map {a: !!int 1}\n", "{a@1:12=1@1:15}"),
    ])
    func `nodes have their position`(text: String, tree: String) { #expect(outcome(text) == tree) }

    @Test(arguments: [
        ("a: *b\n", "1:4 found undefined alias"),
        ("a: 1\n---\nb: 2\n", "2:1 but found another document"),
        ("a: [1\nb: 2\n", "2:2 did not find expected ',' or ']'"),
        ("a: ü\u{1}\n", "1:5 control characters are not allowed"),
        (String(repeating: "[", count: 100_000), "1:65 found more than 64 levels of lists and mappings"),
    ])
    func `a mistake has its position`(text: String, mistake: String) { #expect(outcome(text) == mistake) }

    // Ten lines would stand for ten thousand million values.
    @Test func `aliases of aliases are bounded`() {
        let lines = (1...10).map { "l\($0): &l\($0) [" + String(repeating: "*l\($0 - 1), ", count: 10) + "]" }
        #expect(outcome("l0: &l0 x\n" + lines.joined(separator: "\n")).hasSuffix("found more than 1000000 values"))
    }
}
