/// How one value is written, in the file and in flags: from text to value and back.
public struct ScalarSyntax<Value: Sendable>: Sendable {
    enum Parsed {
        case value(Value)
        case malformed
        case outOfRange
        /// For a reason that needs its own words.
        case refused(String)

        var isMalformed: Bool { if case .malformed = self { true } else { false } }
    }

    /// What it looks like: 'a duration such as `30s`'.
    let form: String
    /// What is allowed, in brackets after `form` and in the shipped file: '100ms to 1h'.
    let range: String?
    /// The known words, for guessing what a misspelled one meant.
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

    /// The value that `text` stands for. For flags.
    /// - Throws: what to write instead.
    public func value(of text: String) throws(ValueMistake) -> Value {
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

    /// How `value` is written.
    public func text(of value: Value) -> String { write(value) }

    private var expectation: String { range.map { "\(form) (\($0))" } ?? form }

    /// A syntax of the same text for a type that holds the value in another form.
    func mapped<Other>(
        to convert: @escaping @Sendable (Value) -> Other, from restore: @escaping @Sendable (Other) -> Value
    ) -> ScalarSyntax<Other> {
        ScalarSyntax<Other>(form, range: range, words: words, write: { write(restore($0)) }) { text in
            switch parse(text) {
            case .value(let value): .value(convert(value))
            case .malformed: .malformed
            case .outOfRange: .outOfRange
            case .refused(let reason): .refused(reason)
            }
        }
    }

    /// What `scalar` takes, or a word that stands for `nil`.
    static func optional<Wrapped>(_ scalar: ScalarSyntax<Wrapped>, _ word: String) -> ScalarSyntax<Wrapped?>
    where Value == Wrapped? {
        ScalarSyntax(
            "\(scalar.form), or `\(word)`", range: scalar.range.map { "\($0), or \(word)" },
            words: scalar.words + [word],
            write: { $0.map(scalar.write) ?? word }
        ) { text in
            if text == word { return .value(nil) }
            switch scalar.parse(text) {
            case .value(let value): return .value(value)
            case .malformed: return .malformed
            case .outOfRange: return .outOfRange
            case .refused(let reason): return .refused(reason)
            }
        }
    }
}

/// What is wrong with a single value, and what to write instead.
public struct ValueMistake: Error, Equatable, Sendable, CustomStringConvertible {
    /// One sentence without the name of the key.
    public let description: String
}
