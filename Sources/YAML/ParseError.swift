/// Why a text is not a YAML document, in libyaml's words.
public struct ParseError: Error, Sendable, Equatable {
    public let problem: String
    public let mark: Mark
    /// The construct that was being read, such as 'while parsing a block mapping', and the place where it begins.
    public let context: Context?
    /// Whether the error is a character that no YAML text may contain, not a fault in the structure.
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
