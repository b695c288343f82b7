/// From the text of a configuration file to settings.
public enum Configuration {
    /// Reads all of `text`, a YAML document; what it does not mention keeps its default. No I/O.
    /// - Parameters:
    ///   - path: the file's name, for the mistakes.
    ///   - flags: what overrides the file.
    /// - Returns: the settings, or every mistake in the order of the file.
    public static func load(text: String, path: String, overriddenBy flags: Overrides = Overrides()) -> Result<
        Settings, Mistakes
    > {
        if let message = encodingMistake(in: text) {
            return .failure(
                Mistakes(all: [Mistake(path: path, position: Position(line: 1, column: 1), message: message)]))
        }
        let text = withoutMark(text)
        // Something failed to write it, such as `<(envsubst <template)` without a template.
        guard text.contains(where: { !$0.isWhitespace }) else {
            let message = "the file is empty; if you want all defaults, put a comment in it"
            return .failure(
                Mistakes(all: [Mistake(path: path, position: Position(line: 1, column: 1), message: message)]))
        }
        let document: Document
        switch Document.parse(text) {
        case .success(let parsed): document = parsed
        case .failure(let error):
            return .failure(Mistakes(all: [Mistake(path: path, position: error.position, message: error.message)]))
        }
        var reader = Reader(document)
        var settings = Settings()
        if let root = document.root { reader.read(root, as: KeyTable.all, into: &settings, called: "the file") }
        settings.statesMaxConnections = document.states("max-connections", in: "clients")
        reader.checkUpstreams(of: settings)
        reader.checkKeyFields(of: settings)
        // A flag for less memory is no mistake of the file: less is stored of a response then.
        reader.checkStorage(of: settings, in: document.root)
        settings = settings.overridden(by: flags)
        reader.checkRoutes(of: settings, in: document.root)
        reader.checkUse(of: settings, in: document.root)
        reader.checkListeners(of: settings, in: document.root)
        reader.checkServers(of: settings, in: document.root)
        reader.checkAccessLog(of: settings, in: document.root, besides: path)
        guard !reader.notes.isEmpty else {
            settings.warnings = mistakes(reader.warnings, in: path)
            return .success(settings)
        }
        return .failure(Mistakes(all: mistakes(reader.notes, in: path)))
    }

    /// In the order of the file.
    private static func mistakes(_ notes: [Reader.Note], in path: String) -> [Mistake] {
        notes.sorted { $0.position < $1.position }
            .map { Mistake(path: path, position: $0.position, message: $0.message) }
    }

    /// Some editors save text as UTF-16 or UTF-32; of these, read as UTF-8, every second character or more is a zero,
    /// and the mark at the beginning is no character at all. No text has zeros.
    private static func encodingMistake(in text: String) -> String? {
        guard text.unicodeScalars.prefix(4).contains("\0") else { return nil }
        return "this is UTF-16 or UTF-32, not text in UTF-8; save the file as UTF-8"
    }

    /// A byte order mark is no part of the text, and editors count no column for it; the parser would.
    private static func withoutMark(_ text: String) -> String {
        guard text.unicodeScalars.first == "\u{FEFF}" else { return text }
        return String(text.unicodeScalars.dropFirst())
    }
}

/// Everything that is wrong in one file; never empty.
public struct Mistakes: Error, Equatable, Sendable {
    /// The mistakes in the order of the file; at least one.
    public let all: [Mistake]
}
