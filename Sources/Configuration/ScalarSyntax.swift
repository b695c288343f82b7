/// The syntax of a single value in the file and in flags: parses a text and writes a value.
package struct ScalarSyntax<Value: Sendable>: Sendable {
    enum Parsed {
        case value(Value)
        case malformed
        case outOfRange
        /// Not allowed, for a reason with a message of its own.
        case refused(String)

        var isMalformed: Bool { if case .malformed = self { true } else { false } }

        /// The same outcome; a value is replaced by the outcome that `parse` has for it.
        func then<Other>(_ parse: (Value) -> ScalarSyntax<Other>.Parsed) -> ScalarSyntax<Other>.Parsed {
            switch self {
            case .value(let value): parse(value)
            case .malformed: .malformed
            case .outOfRange: .outOfRange
            case .refused(let reason): .refused(reason)
            }
        }
    }

    /// A description of the form: 'a duration such as `30s`'.
    let form: String
    /// The allowed values, shown in brackets after `form` and in the shipped file: '100ms to 1h'.
    let range: String?
    /// The known words, for guessing the meaning of a misspelled one.
    let words: [String]
    let parse: @Sendable (String) -> Parsed
    let write: @Sendable (Value) -> String

    init(
        _ form: String, range: String? = nil, words: [String] = [],
        write: @escaping @Sendable (Value) -> String, parse: @escaping @Sendable (String) -> Parsed
    ) {
        self.form = form
        self.range = range
        self.words = words
        self.parse = parse
        self.write = write
    }

    /// The value of `text`. For flags.
    /// - Throws: a description of the mistake, with advice.
    package func value(of text: String) throws(ValueMistake) -> Value {
        switch parse(text) {
        case .value(let value): return value
        case .malformed:
            if let near = Spelling.nearest(to: text, among: words) {
                throw ValueMistake(description: "not understood; did you mean `\(near)`?")
            }
            throw ValueMistake(description: "not understood; give \(expectation)")
        case .outOfRange: throw ValueMistake(description: "out of range; give \(expectation)")
        case .refused(let reason): throw ValueMistake(description: reason)
        }
    }

    /// The text of `value`.
    package func text(of value: Value) -> String { write(value) }

    private var expectation: String { range.map { "\(form) (\($0))" } ?? form }

    /// The same syntax for a type that holds the value in another form.
    func mapped<Other>(
        to convert: @escaping @Sendable (Value) -> Other, from restore: @escaping @Sendable (Other) -> Value
    ) -> ScalarSyntax<Other> {
        ScalarSyntax<Other>(form, range: range, words: words, write: { write(restore($0)) }) { text in
            parse(text).then { .value(convert($0)) }
        }
    }

    /// One of these words.
    static func oneOf(_ values: [(word: String, value: Value)]) -> Self where Value: Equatable {
        let words = values.map(\.word)
        return ScalarSyntax(
            "one of these words", range: words.joined(separator: ", "), words: words,
            write: { value in values.first { $0.value == value }?.word ?? words[0] }
        ) { text in values.first { $0.word == text }.map { .value($0.value) } ?? .malformed }
    }

    /// The syntax of `scalar`, or a word for `nil`.
    static func optional<Wrapped>(_ scalar: ScalarSyntax<Wrapped>, _ word: String) -> ScalarSyntax<Wrapped?>
    where Value == Wrapped? {
        ScalarSyntax(
            "\(scalar.form), or `\(word)`", range: scalar.range.map { "\($0), or \(word)" },
            words: scalar.words + [word],
            write: { $0.map(scalar.write) ?? word }
        ) { text in
            text == word ? .value(nil) : scalar.parse(text).then { .value($0) }
        }
    }
}

/// A mistake in a single value, with advice.
package struct ValueMistake: Error, Equatable, Sendable, CustomStringConvertible {
    /// One sentence without the name of the key.
    package let description: String
}
