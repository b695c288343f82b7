import Bytes
import CertificateMaking
import Configuration
import TLS
import Testing

/// The files of a test, and what its configuration says of them.
struct Shelf: Sendable {
    var texts: [String: String] = [:]
    /// Those that all users may read.
    var open: Set<String> = []
    var folders: [String: Files.FolderState] = [:]
    var systemMistake: String?

    /// A certificate in `/NAME.pem` and its key in `/NAME.key`.
    mutating func add(_ name: String, for names: [String], days: Int = 30) throws {
        let made = try TLSIdentity.selfSigned(names: names, days: days)
        texts["/\(name).pem"] = String(made.certificate.content)
        texts["/\(name).key"] = String(made.key.content)
    }

    /// An authority's certificate in `/NAME.pem`, with those of `issuers` behind it, and its key in `/NAME.key`.
    mutating func add(_ name: String, _ identity: TLSIdentity, issuers: TestAuthority...) {
        texts["/\(name).pem"] = String(identity.certificate.content) + issuers.map { String($0.file.content) }.joined()
        texts["/\(name).key"] = String(identity.key.content)
    }

    /// Certificates for `a.example` and `b.example`, in `/a.pem` and `/b.pem`.
    static let usual: Shelf = {
        var shelf = Shelf()
        // Without them each test fails that names a file.
        try? shelf.add("a", for: ["a.example"])
        try? shelf.add("b", for: ["b.example", "*.b.example"])
        return shelf
    }()

    func load(
        _ text: String, _ variables: [String: String] = [:], _ flags: Overrides = Overrides()
    ) -> Result<Settings, Mistakes> {
        Configuration.load(
            text: text, path: "f", variables: Variables(variables), overriddenBy: flags, files: files)
    }

    func loadWithoutFile(_ variables: [String: String] = [:], _ flags: Overrides) -> Result<Settings, Mistakes> {
        Configuration.withoutFile(variables: Variables(variables), overriddenBy: flags, files: files)
    }

    private var files: Files {
        Files(
            isReadableByAll: { open.contains($0) }, folder: { folders[$0] ?? .folder },
            systemAuthoritiesMistake: { systemMistake }
        ) { path in
            texts[path].map { .success(Array($0.utf8)) }
                ?? .failure(Files.Failure("Permission denied", remedy: "let us"))
        }
    }
}

extension Result<Settings, Mistakes> {
    /// The mistakes as `check` prints them.
    var mistakes: [String] {
        switch self {
        case .success: []
        case .failure(let mistakes): mistakes.all.map(\.description)
        }
    }
}
