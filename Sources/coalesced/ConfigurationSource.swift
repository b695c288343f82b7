import ArgumentParser
import Configuration

/// The source of the settings: a file, if there is one, and the flags that override it. Read at the start and at each
/// reload.
struct ConfigurationSource {
    /// The file that is read if `--config` names none and this one exists.
    static let defaultPath = "/etc/coalesced/coalesced.yaml"

    enum Failure: Error {
        case unreadable(path: String, System.Failure)
        case mistakes(Mistakes)
        /// A mistake in the flags alone.
        case usage(String)

        /// One line for each problem.
        var lines: [String] {
            switch self {
            case .unreadable(let path, let failure): ["\(path): \(failure)"]
            case .mistakes(let mistakes): mistakes.all.map(\.description)
            case .usage(let mistake): [mistake]
            }
        }

        var exitStatus: ExitCode {
            switch self {
            case .unreadable(_, let failure): failure.isForbidden ? ExitStatus.noPermission : ExitStatus.configuration
            case .mistakes: ExitStatus.configuration
            case .usage: ExitCode.validationFailure
            }
        }

        /// Prints the lines on standard error, for a command that must end, and returns its exit code.
        func report() -> ExitCode {
            System.writeError(lines.map { $0 + "\n" }.joined())
            return exitStatus
        }
    }

    /// The path given with `--config`; `nil` for the default file, if it exists.
    var path: String?
    var flags = Overrides()

    /// - Parameter mayWait: whether to wait for the writer of a pipe (`<(envsubst …)`, `/dev/stdin`). A reload must not
    ///   wait, since all signals would wait with it.
    func load(mayWait: Bool = true) throws(Failure) -> Settings { try read(mayWait: mayWait).settings }

    /// Reads the settings and the path of the file; the path is `nil` if there is no file, and none was named.
    func read(mayWait: Bool) throws(Failure) -> (settings: Settings, path: String?) {
        // A mistake in the flags that no file can correct.
        if !flags.listeners.isEmpty, flags.admin != nil, let mistake = Settings().overridden(by: flags).listenerMistake
        {
            throw .usage(mistake)
        }
        guard let text = try text(mayWait: mayWait) else {
            let settings = Settings.withoutFile.overridden(by: flags)
            if let mistake = settings.listenerMistake ?? settings.serverMistake?.message { throw .usage(mistake) }
            return (settings, nil)
        }
        switch Configuration.load(text: text, path: readPath, overriddenBy: flags) {
        case .success(let settings): return (settings, readPath)
        case .failure(let mistakes): throw .mistakes(mistakes)
        }
    }

    var readPath: String { path ?? Self.defaultPath }

    /// `nil` if no file was named and the default file does not exist.
    private func text(mayWait: Bool) throws(Failure) -> String? {
        do throws(System.Failure) {
            return try System.contents(of: readPath, mayWait: mayWait)
        } catch {
            if path == nil, error.isMissing { return nil }
            throw .unreadable(path: readPath, error)
        }
    }
}
