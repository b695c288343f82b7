import Admin
import Bytes
import HTTPSemantics
import Routing

/// Reads the files that a configuration names.
package struct Files: Sendable {
    /// The most bytes of a file.
    package static let mostBytes = 1 << 20

    /// The bytes of the file at a path, or why they cannot be had.
    package let contents: @Sendable (String) -> Result<[UInt8], Failure>
    /// Whether all users of this machine may read the file at a path.
    package let isReadableByAll: @Sendable (String) -> Bool
    /// The state of a path where a folder should be.
    package let folder: @Sendable (String) -> FolderState
    /// Why the system's authorities of certificates cannot be had; `nil` if they can.
    package let systemAuthoritiesMistake: @Sendable () -> String?

    /// The reason why a file cannot be read, and the remedy.
    package struct Failure: Error {
        let (reason, remedy): (String, String)
        /// - Parameters:
        ///   - reason: such as `No such file or directory`.
        ///   - remedy: such as `correct the path`.
        package init(_ reason: String, remedy: String) { (self.reason, self.remedy) = (reason, remedy) }
    }

    /// The state of a path where a folder should be.
    package enum FolderState: Sendable {
        case folder, absent
        /// A file or something else.
        case other
    }

    package init(
        isReadableByAll: @escaping @Sendable (String) -> Bool = { _ in false },
        folder: @escaping @Sendable (String) -> FolderState = { _ in .folder },
        systemAuthoritiesMistake: @escaping @Sendable () -> String? = { nil },
        _ contents: @escaping @Sendable (String) -> Result<[UInt8], Failure>
    ) {
        self.contents = contents
        self.isReadableByAll = isReadableByAll
        self.folder = folder
        self.systemAuthoritiesMistake = systemAuthoritiesMistake
    }
}

extension ScalarSyntax where Value == NamedFile {
    /// The path of a file that is read with the configuration.
    /// - Parameter example: a path that fits the key.
    static func file(such example: String) -> Self {
        ScalarSyntax("a path such as `\(example)`", write: \.path) { text in
            guard text.hasPrefix("/"), !text.hasSuffix("/") else { return .malformed }
            guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F || $0 == "\u{FFFD}" })
            else { return .refused("a path must be valid UTF-8 without control characters") }
            return .value(NamedFile(path: text))
        }
    }
}

extension Settings {
    /// Reads the files that these settings name into them.
    /// - Parameter files: `nil`: no file is read.
    /// - Returns: the mistakes, each with the path of the key that names the file.
    mutating func read(_ files: Files?) -> [(key: String, message: String)] {
        guard let files else { return [] }
        var mistakes: [(key: String, message: String)] = []
        if let mistake = readToken(files) { mistakes.append(("admin.token-file", mistake)) }
        if let mistake = readSecret(files) { mistakes.append((SharedTierKeys.secretFile, mistake)) }
        var tls = TLSFiles(files)
        tls.read(into: &self)
        return mistakes + readPages(files) + tls.mistakes
    }

    /// - Returns: the mistake in the token's file, if one is named.
    mutating func readToken(_ files: Files) -> String? {
        guard var token = admin.tokenFile else { return nil }
        let mistake =
            files.read(&token, called: "token-file")
            ?? AdminToken.mistake(in: token.content).map { "`token-file: \(Spelling.shown(token.path))`: \($0)" }
        admin.tokenFile = token
        return mistake
    }

    /// - Returns: the mistake in the file with the secret of the shared tier, if one is named.
    private mutating func readSecret(_ files: Files) -> String? {
        guard var file = proxy.shared.secretFile else { return nil }
        if let mistake = files.read(&file, called: "secret-file") { return mistake }
        proxy.shared.secretFile = file
        let (count, fewest) = (proxy.shared.secret?.count ?? 0, SharedTierSettings.fewestSecretBytes)
        guard count < fewest else { return nil }
        return
            "`secret-file: \(Spelling.shown(file.path))`: the secret in it has \(count) bytes; give it \(fewest) or more, as `openssl rand -hex 32` does"
    }

    /// Reads the files that routes send. Many routes may name the same file, which is then read once.
    private mutating func readPages(_ files: Files) -> [(key: String, message: String)] {
        var mistakes: [(key: String, message: String)] = []
        var known: [String: ByteSlice] = [:]
        func read(_ file: inout NamedFile, _ name: String, at key: String) {
            if let content = known[file.path] { return file.content = content }
            if let mistake = files.read(&file, called: name) {
                mistakes.append((key, mistake))
            } else {
                known[file.path] = file.content
            }
        }
        for route in proxy.routes.indices {
            if var file = proxy.routes[route].respond?.file {
                read(&file, "file", at: "routes[\(route)].respond.file")
                proxy.routes[route].respond?.file = file
            }
            for page in proxy.routes[route].errorPages.indices {
                let name = "\(proxy.routes[route].errorPages[page].status.code)"
                read(&proxy.routes[route].errorPages[page].file, name, at: "routes[\(route)].error-pages.\(name)")
            }
        }
        return mistakes
    }
}

extension Files {
    /// - Returns: the mistake; `nil` if the file has been read.
    func read(_ file: inout NamedFile, called name: String) -> String? {
        switch contents(file.path) {
        case .success(let bytes):
            file.content = ByteSlice(copying: bytes.span)
            return nil
        case .failure(let failure):
            return
                "`\(name): \(Spelling.shown(file.path))` cannot be read: \(failure.reason); \(failure.remedy)"
        }
    }
}
