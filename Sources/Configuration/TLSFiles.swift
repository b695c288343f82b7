import Bytes
import Routing
import TLS
import Upstream

/// Reads the files for TLS into settings, and finds the mistakes in them.
struct TLSFiles {
    private let files: Files
    /// Several keys may name the same file, which is then read once.
    private var known: [String: ByteSlice] = [:]
    /// Each with the path of the key that names the file.
    private(set) var mistakes: [(key: String, message: String)] = []

    init(_ files: Files) { self.files = files }

    mutating func read(into settings: inout Settings) {
        for index in settings.proxy.tls.identities.indices {
            read(&settings.proxy.tls.identities[index], at: "tls.certificates[\(index)]")
        }
        read(&settings.proxy.tls.ticketKeys, at: "tls.ticket-keys") { (file) throws(TLSSettingsError) in
            _ = try TicketKeys(file)
        }
        read(&settings.proxy.tls.clientAuthorities, at: "tls.client-ca", Self.checkAuthorities)
        if let folder = settings.proxy.tls.acmeChallenges, files.folder(folder) == .other {
            mistakes.append(
                (
                    "tls.acme-challenges",
                    "`acme-challenges: \(Spelling.shown(folder))` is no folder; name the webroot of the ACME client"
                ))
        }
        for index in settings.upstreams.indices {
            read(into: &settings.upstreams[index].tls, at: "upstreams[\(index)].tls")
        }
        read(into: &settings.proxy.shared.tls, at: "shared.tls")
    }

    private mutating func read(into tls: inout TLSPeerSettings, at key: String) {
        read(&tls.authorities, at: "\(key).ca", Self.checkAuthorities)
        if var identity = tls.identity {
            read(&identity, at: "\(key).client-certificate")
            tls.identity = identity
        }
    }

    private static func checkAuthorities(_ file: NamedFile) throws(TLSSettingsError) { _ = try TLSAuthorities(file) }

    /// - Returns: whether the file has been read.
    @discardableResult
    private mutating func read(_ file: inout NamedFile, at key: String) -> Bool {
        // There is a mistake in the file's name, which is noted.
        guard !file.path.isEmpty else { return false }
        if let content = known[file.path] {
            file.content = content
            return true
        }
        if let mistake = files.read(&file, called: Self.name(of: key)) {
            mistakes.append((key, mistake))
            return false
        }
        known[file.path] = file.content
        return true
    }

    private mutating func read(
        _ optional: inout NamedFile?, at key: String, _ check: (NamedFile) throws(TLSSettingsError) -> Void
    ) {
        guard var file = optional, read(&file, at: key) else { return }
        optional = file
        do throws(TLSSettingsError) { try check(file) } catch { note(error, about: file, at: key) }
    }

    private mutating func read(_ identity: inout TLSIdentity, at key: String) {
        let hasCertificate = read(&identity.certificate, at: "\(key).certificate")
        guard read(&identity.key, at: "\(key).key"), hasCertificate else { return }
        do throws(TLSSettingsError) {
            _ = try identity.summary()
            // Otherwise the start would fail, and a reload could not say at which place of the file.
            try identity.tryOut()
        } catch {
            let isAboutKey = error.file == identity.key.path && error.file != identity.certificate.path
            if isAboutKey {
                note(error, about: identity.key, at: "\(key).key")
            } else {
                note(error, about: identity.certificate, at: "\(key).certificate")
            }
        }
    }

    private mutating func note(_ error: TLSSettingsError, about file: NamedFile, at key: String) {
        mistakes.append((key, "`\(Self.name(of: key)): \(Spelling.shown(file.path))`: \(error.explanation)"))
    }

    private static func name(of key: String) -> String { key.split(separator: ".").last.map(String.init) ?? key }
}
