/// From the text of a configuration file to settings.
public enum Configuration {
    /// Reads all of `text`, a YAML document; what it does not mention keeps its default. No I/O.
    /// - Parameter path: the file's name, for the mistakes.
    /// - Returns: the settings, or every mistake in the order of the file.
    public static func load(text: String, path: String) -> Result<Settings, Mistakes> {
        let document: Document
        switch Document.parse(text) {
        case .success(let parsed): document = parsed
        case .failure(let error):
            return .failure(Mistakes(all: [Mistake(path: path, position: error.position, message: error.message)]))
        }
        var reader = Reader(document)
        var settings = Settings()
        if let root = document.root { reader.read(root, as: KeyTable.all, into: &settings, called: "the file") }
        reader.checkUpstreams(of: settings)
        reader.checkKeyFields(of: settings)
        guard !reader.notes.isEmpty else { return .success(settings) }
        let notes = reader.notes.sorted { $0.position < $1.position }
        return .failure(Mistakes(all: notes.map { Mistake(path: path, position: $0.position, message: $0.message) }))
    }
}

/// All that is wrong in one file; never empty.
public struct Mistakes: Error, Equatable, Sendable {
    /// In the order of the file; at least one.
    public let all: [Mistake]
}
