/// Why a text is no YAML document, in libyaml's words.
public struct ParseError: Error, Sendable, Equatable {
    public let problem: String
    public let mark: Mark
    /// What was being read, such as 'while parsing a block mapping', and where that begins.
    public let context: Context?
    /// Whether a character is at fault that no YAML text may have, rather than the structure.
    public let isForbiddenCharacter: Bool

    public struct Context: Sendable, Equatable {
        public let text: String
        public let mark: Mark
    }

    init(_ problem: String, at mark: Mark, context: Context? = nil, isForbiddenCharacter: Bool = false) {
        self.problem = problem
        self.mark = mark
        self.context = context
        self.isForbiddenCharacter = isForbiddenCharacter
    }
}
