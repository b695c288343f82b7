import Bytes
import Glibc

/// The authorities that the system believes.
extension TLSAuthorities {
    /// The files that may hold them, the first one that exists counts: the one that the environment variable
    /// `SSL_CERT_FILE` names, as with OpenSSL, or else the bundles of the distributions.
    public static let systemFiles: [String] = {
        // The program sets no variable, so the text stays where it is while it is copied.
        let named = unsafe getenv("SSL_CERT_FILE").map { unsafe String(cString: $0) }
        if let named, named.hasPrefix("/") { return [named] }
        return [
            "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
            "/etc/ssl/cert.pem",
        ]
    }()

    /// The authorities in the first of `systemFiles` that exists. Read at the first use, which takes tens of milliseconds
    /// and so must not be on a loop of requests; a change of the file counts after a restart.
    public static let system: Result<TLSAuthorities, TLSSettingsError> = readSystemFile()

    private static func readSystemFile() -> Result<TLSAuthorities, TLSSettingsError> {
        for path in systemFiles {
            guard let content = contents(of: path) else { continue }
            var file = NamedFile(path: path)
            file.content = content
            return Result { () throws(TLSSettingsError) in try TLSAuthorities(file) }
        }
        return .failure(
            TLSSettingsError(
                file: systemFiles[0],
                "no file with the system's authorities can be read (the package ca-certificates has one)"))
    }

    /// `nil` if the file cannot be read.
    private static func contents(of path: String) -> ByteSlice? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var (bytes, piece) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
        while true {
            let count = unsafe read(file, &piece, piece.count)
            guard count >= 0, bytes.count <= mostBytes else { return nil }
            if count == 0 { return ByteSlice(copying: bytes.span) }
            bytes += piece[..<count]
        }
    }

    /// The bundles of the distributions have some 200 KB.
    private static let mostBytes = 16 << 20
}
