/// Turns the text of a configuration file, environment variables and flags into settings.
package enum Configuration {
    /// Reads `text`, a YAML document. A key that is not in the text keeps its default. No I/O but through `files`.
    /// - Parameters:
    ///   - path: the file's name, for the mistakes.
    ///   - variables: override the file.
    ///   - flags: override the file and the variables.
    ///   - files: reads the files that are named in the settings; `nil`: they are not read.
    /// - Returns: the settings, or all mistakes in the order of the file.
    package static func load(
        text: String, path: String, variables: Variables = Variables(), overriddenBy flags: Overrides = Overrides(),
        files: Files? = nil
    ) -> Result<Settings, Mistakes> {
        let document: Document
        switch self.document(of: text, path: path) {
        case .success(let parsed): document = parsed
        case .failure(let mistakes): return .failure(mistakes)
        }
        var reader = Reader(document)
        var settings = Settings()
        if let root = document.root { reader.read(root, as: KeyTable.all, into: &settings, called: "the file") }
        settings.statesMaxConnections = document.states("max-connections", in: "clients")
        reader.checkKeyFields(of: settings)
        // Checked before the flags apply: a flag for less memory is not a mistake of the file. It only lowers the size
        // up to which responses are stored.
        reader.checkStorage(of: settings, in: document.root)
        var (wrong, unknown) = variables.apply(to: &settings)
        settings = settings.overridden(by: flags)
        let places = document.root?.places ?? [:]
        // If the file has a mistake, something may be missing for which it has no place.
        let ofTLS = reader.notes.isEmpty ? settings.tlsMistakes : []
        for (key, message) in settings.read(files) + settings.sharedTimesMistakes + ofTLS {
            if let name = flags.flag(forKey: key) ?? variables.name(forKey: key) {
                wrong.append(Mistake(path: name, position: nil, message: message))
            } else {
                reader.note(document.position(ofKey: key, among: places), message)
            }
        }
        for (key, message) in settings.openSecrets(files) + settings.tlsWarnings(files) {
            if let name = flags.flag(forKey: key) ?? variables.name(forKey: key) {
                unknown.append(Mistake(path: name, position: nil, message: message))
            } else {
                reader.warn(document.position(ofKey: key, among: places), message)
            }
        }
        reader.checkUpstreams(of: settings, in: document.root)
        reader.checkRoutes(of: settings, in: document.root)
        reader.checkHostVariable(of: settings, in: document.root)
        reader.checkLifetimes(of: settings, in: document.root)
        reader.checkStrippedCookies(of: settings, in: document.root)
        reader.checkUse(of: settings, in: document.root)
        SharedTierKeys.checkUse(of: settings, in: document.root, &reader)
        UpstreamAdvice.give(on: settings.upstreams, in: document.root, &reader)
        reader.checkListeners(of: settings, in: document.root)
        reader.checkServers(of: settings, in: document.root)
        reader.checkAccessLog(of: settings, in: document.root, besides: path)
        let all = mistakes(reader.notes, in: path) + wrong
        guard all.isEmpty else { return .failure(Mistakes(all: all)) }
        settings.warnings = mistakes(reader.warnings, in: path) + unknown + settings.unboundHosts(in: variables)
        return .success(settings)
    }

    /// The document of `text`, or why it is none.
    static func document(of text: String, path: String) -> Result<Document, Mistakes> {
        func failure(_ message: String, at position: Position = Position(line: 1, column: 1)) -> Mistakes {
            Mistakes(all: [Mistake(path: path, position: position, message: message)])
        }
        if let message = encodingMistake(in: text) { return .failure(failure(message)) }
        let text = withoutMark(text)
        // The program that should have written the file failed, such as `<(envsubst <template)` without a template.
        guard text.contains(where: { !$0.isWhitespace }) else {
            return .failure(failure("the file is empty; if you want all defaults, put a comment in it"))
        }
        return Document.parse(text).mapError { failure($0.message, at: $0.position) }
    }

    /// The settings without a file.
    package static func withoutFile(
        variables: Variables, overriddenBy flags: Overrides, files: Files? = nil
    ) -> Result<Settings, Mistakes> {
        var settings = Settings.withoutFile
        var (wrong, unknown) = variables.apply(to: &settings)
        settings = settings.overridden(by: flags)
        func mistake(_ key: String, _ message: String) -> Mistake {
            Mistake(
                path: flags.flag(forKey: key) ?? variables.name(forKey: key) ?? key, position: nil, message: message)
        }
        wrong += (settings.read(files) + settings.sharedTimesMistakes + settings.tlsMistakes).map(mistake)
        guard wrong.isEmpty else { return .failure(Mistakes(all: wrong)) }
        unknown += (settings.openSecrets(files) + settings.tlsWarnings(files)).map(mistake)
        settings.warnings = unknown + settings.unboundHosts(in: variables)
        return .success(settings)
    }

    /// The notes as mistakes, in the order of the file.
    static func mistakes(_ notes: [Reader.Note], in path: String) -> [Mistake] {
        notes.sorted { $0.position < $1.position }
            .map { Mistake(path: path, position: $0.position, message: $0.message) }
    }

    /// Some editors save text as UTF-16 or UTF-32. Read as UTF-8, at least every second character of such a file is a
    /// NUL, and the byte order mark is not a valid character. A text never contains a NUL.
    private static func encodingMistake(in text: String) -> String? {
        guard text.unicodeScalars.prefix(4).contains("\0") else { return nil }
        return "this is UTF-16 or UTF-32, not text in UTF-8; save the file as UTF-8"
    }

    /// Removes the byte order mark. It is not part of the text, and editors count no column for it, unlike the parser.
    static func withoutMark(_ text: String) -> String {
        guard text.unicodeScalars.first == "\u{FEFF}" else { return text }
        return String(text.unicodeScalars.dropFirst())
    }
}

/// All mistakes in one file; never empty.
package struct Mistakes: Error, Equatable, Sendable {
    /// The mistakes in the order of the file; at least one.
    package let all: [Mistake]
}
