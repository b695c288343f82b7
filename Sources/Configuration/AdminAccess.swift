import TLS
package import Bytes
package import Admin
package import Libevent
import Routing
import YAML

/// The address, the token and the certificates of the admin listener, for a command that asks the running proxy. Other keys of the file
/// may have mistakes.
package struct AdminAccess: Sendable, Equatable {
    /// `nil`: there is no admin listener.
    package var address: SocketAddress?
    /// Whether it speaks TLS there.
    package var isSecure: Bool
    /// The certificates that it may show, with their chains, as far as this user can read them.
    package var certificates: [NamedFile]
    /// `nil`: none is asked for, or there is a `tokenMistake`.
    package var token: AdminToken?
    /// The file with the token; `nil`: none is named.
    package var tokenPath: String?
    /// Why there is no token although a file is named, or may be meant.
    package var tokenMistake: Mistake?

    /// The access that these settings describe. Their files have been read.
    package init(_ settings: Settings, tokenMistake: Mistake? = nil) {
        let admin = settings.admin
        address = admin.address
        isSecure = admin.isSecure
        certificates = settings.proxy.tls.identities.map(\.certificate).filter { !$0.content.isEmpty }
        token = tokenMistake == nil ? admin.tokenFile.map { AdminToken($0.content) } : nil
        tokenPath = admin.tokenFile?.path
        self.tokenMistake = tokenMistake
    }
}

extension Configuration {
    /// Reads the keys that commands need to ask the admin listener.
    /// - Parameters:
    ///   - text: `nil`: there is no file.
    ///   - path: the file's name, for the mistakes.
    ///   - files: reads the files with the token and the certificates.
    /// - Returns: the access, or the mistakes for which the address is not known.
    package static func adminAccess(
        text: String?, path: String, variables: Variables, overriddenBy flags: Overrides = Overrides(), files: Files
    ) -> Result<AdminAccess, Mistakes> {
        var settings = text == nil ? Settings.withoutFile : Settings()
        var (ofAddress, ofToken): ([Mistake], [Mistake]) = ([], [])
        var tokenPlace: Position?
        if let text {
            let document: Document
            switch self.document(of: text, path: path) {
            case .success(let parsed): document = parsed
            case .failure(let mistakes): return .failure(mistakes)
            }
            let keys = KeyTable.all.first { $0.name == "admin" }?.children ?? []
            if let group = document.root?["admin"] {
                var (whole, ignored) = (Reader(document), settings)
                whole.read(group, as: keys, into: &ignored, called: "`admin`")
                func read(_ name: String) -> [Mistake] {
                    // Without the key, a mistake may be in its name.
                    var notes = whole.notes.filter { group.hasKey(at: $0.position) }
                    if let node = group[name], let key = keys.first(where: { $0.name == name }) {
                        var reader = Reader(document)
                        key.read(node, &settings, &reader)
                        notes = reader.notes
                    }
                    return mistakes(notes, in: path)
                }
                (ofAddress, ofToken) = (read("address"), read("token-file"))
                tokenPlace = group["token-file"]?.position
            }
            if let node = document.root?["tls"]?["certificates"],
                let key = KeyTable.all.first(where: { $0.name == "tls" })?.children.first(where: {
                    $0.name == "certificates"
                })
            {
                var ignored = Reader(document)
                key.read(node, &settings, &ignored)
            }
        }
        let (wrong, _) = variables.apply(to: &settings)
        settings = settings.overridden(by: flags)
        if let name = variables.name(forKey: "admin.address") { ofAddress = wrong.filter { $0.path == name } }
        if flags.admin == nil, !ofAddress.isEmpty { return .failure(Mistakes(all: ofAddress)) }
        let name = variables.name(forKey: "admin.token-file")
        if let name { ofToken = wrong.filter { $0.path == name } }
        let mistake =
            ofToken.first
            ?? settings.readToken(files).map {
                Mistake(path: name ?? path, position: name == nil ? tokenPlace : nil, message: $0)
            }
        for index in settings.proxy.tls.identities.indices {
            // A certificate that this user may not read is just not compared.
            _ = files.read(&settings.proxy.tls.identities[index].certificate, called: "certificate")
        }
        return .success(AdminAccess(settings, tokenMistake: mistake))
    }
}

extension Node {
    /// Whether a note at `position` is about a key of this group, or about the group.
    fileprivate func hasKey(at position: Position) -> Bool {
        guard case .mapping(let mapping) = self else { return true }
        return self.position == position || mapping.pairs.contains { $0.key.position == position }
    }
}
