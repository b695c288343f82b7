import ArgumentParser
import Configuration
import TLS

/// The source of the settings: a file, if there is one, the environment variables that override it, and the flags that
/// override both. Read at the start and at each reload.
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
            case .unreadable(let path, let failure): ["\(path): \(failure); \(Self.advice(for: failure))"]
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

        private static func advice(for failure: System.Failure) -> String {
            if failure.isMissing { return "create it, or name another with --config" }
            if failure.isForbidden { return "let the user of this process read it" }
            return switch failure {
            case .mayWait: "restart the program to read it again"
            case .call, .notAFile, .tooLarge: "name a configuration file with --config"
            }
        }

        /// Prints the lines on standard error, for a command that must end, and returns its exit code.
        func report() -> ExitCode {
            System.writeError(lines.map { $0 + "\n" }.joined())
            return exitStatus
        }
    }

    /// The settings, and where they are from.
    struct Reading {
        let settings: Settings
        /// The file's path and text; `nil` if there is no file, and none was named.
        let file: (path: String, text: String)?
        let sources: Sources
    }

    /// The path given with `--config`; `nil` for the default file, if it exists.
    var path: String?
    var flags = Overrides()
    private let variables = Variables(System.environment(withPrefix: Variables.prefix))

    /// - Parameter mayWait: whether to wait for the writer of a pipe (`<(envsubst …)`, `/dev/stdin`). A reload must not
    ///   wait, since all signals would wait with it.
    func load(mayWait: Bool = true) throws(Failure) -> Settings { try read(mayWait: mayWait).settings }

    func read(mayWait: Bool) throws(Failure) -> Reading {
        // A mistake in the flags that no file can correct.
        if !flags.listeners.isEmpty, flags.admin != nil, let mistake = Settings().overridden(by: flags).listenerMistake
        {
            throw .usage(mistake)
        }
        guard let text = try text(mayWait: mayWait) else {
            var settings = try settings(
                of: Configuration.withoutFile(variables: variables, overriddenBy: flags, files: Self.files))
            if let mistake = settings.listenerMistake ?? settings.serverMistake?.message { throw .usage(mistake) }
            let sources = Sources(file: nil, variables: variables, flags: flags)
            settings.warnings += Self.certificateWarnings(of: settings, from: sources)
            return Reading(settings: settings, file: nil, sources: sources)
        }
        var settings = try settings(
            of: Configuration.load(
                text: text, path: readPath, variables: variables, overriddenBy: flags, files: Self.files))
        let file = (path: readPath, text: text)
        let sources = Sources(file: file, variables: variables, flags: flags)
        settings.warnings += Self.certificateWarnings(of: settings, from: sources)
        return Reading(settings: settings, file: file, sources: sources)
    }

    private static func certificateWarnings(of settings: Settings, from sources: Sources) -> [Mistake] {
        CertificateReview(of: settings, at: System.wallClockSeconds).warnings.map { key, message in
            Mistake(path: sources.place(ofKey: key) ?? key, position: nil, message: message)
        }
    }

    /// The address and the token of the admin listener, for a command.
    func adminAccess() throws(Failure) -> AdminAccess {
        switch Configuration.adminAccess(
            text: try text(mayWait: true), path: readPath, variables: variables, overriddenBy: flags, files: Self.files)
        {
        case .success(let access): return access
        case .failure(let mistakes): throw .mistakes(mistakes)
        }
    }

    /// Reads regular files only: a reload does not wait for a pipe.
    private static let files = Files(
        isReadableByAll: System.isReadableByAll, folder: System.folder,
        systemAuthoritiesMistake: {
            do throws(TLSSettingsError) { _ = try TLSAuthorities.system.get() } catch { return "\(error)" }
            return nil
        }
    ) { path in
        do throws(System.Failure) {
            return .success(try System.bytes(of: path, mayWait: false))
        } catch {
            return .failure(Files.Failure(error))
        }
    }

    private func settings(of result: Result<Settings, Mistakes>) throws(Failure) -> Settings {
        switch result {
        case .success(let settings): return settings
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

extension Files.Failure {
    /// The failure of a file that the configuration names.
    fileprivate init(_ failure: System.Failure) {
        switch failure {
        case .notAFile, .mayWait: self.init("Not a regular file", remedy: "name one")
        case .tooLarge: self.init("\(failure)", remedy: "make it smaller, or name another")
        case .call:
            self.init(
                "\(failure)",
                remedy: failure.isForbidden
                    ? Self.remedyForForbidden
                    : failure.isMissing ? "create it, or correct the path" : "correct the path")
        }
    }

    /// Many keys belong to root, in folders that nobody else may enter.
    private static var remedyForForbidden: String {
        let (user, group) = (System.userName, System.groupName)
        return
            "this program runs as user \(user), which must be able to read the file and to enter the folders above it, for example by its group: `chgrp \(group) FILE && chmod g+r FILE`"
    }
}
