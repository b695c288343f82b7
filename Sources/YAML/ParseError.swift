/// Why a text is not a YAML document, in libyaml's words.
package struct ParseError: Error, Sendable, Equatable {
    package let problem: String
    package let mark: Mark
    /// The construct that was being read, such as 'while parsing a block mapping', and the place where it begins.
    package let context: Context?
    /// Whether the error is a character that no YAML text may contain, not a fault in the structure.
    package let isForbiddenCharacter: Bool

    package struct Context: Sendable, Equatable {
        package let text: String
        package let mark: Mark
    }

    init(_ problem: String, at mark: Mark, context: Context? = nil, isForbiddenCharacter: Bool = false) {
        self.problem = problem
        self.mark = mark
        self.context = context
        self.isForbiddenCharacter = isForbiddenCharacter
    }
}
