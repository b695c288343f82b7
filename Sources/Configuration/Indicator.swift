/// The indicator characters that cannot begin a plain value (YAML 1.2.2 §5.3). A value that begins with one of them
/// needs quotes.
enum Indicator {
    private static let meanings: [Unicode.Scalar: String] = [
        "*": "an alias", "&": "an anchor", "!": "a tag", "%": "a directive", "@": "reserved", "`": "reserved",
    ]

    /// The advice for a value that begins at `start` with such a character; `nil` if it begins with another one.
    static func advice(at start: Int, in text: [Unicode.Scalar]) -> String? {
        guard text.indices.contains(start), let meaning = meanings[text[start]] else { return nil }
        var value = String.UnicodeScalarView()
        value.append(
            contentsOf: text[start...].prefix { !$0.properties.isWhitespace && !",]}\"".unicodeScalars.contains($0) })
        return "`\(text[start])` at the beginning of a value is \(meaning) in YAML; "
            + "put the value in quotes: `\"\(Spelling.shown(String(value)))\"`"
    }
}
