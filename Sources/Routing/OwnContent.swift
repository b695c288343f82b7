public import Bytes

/// A content that this proxy has from its configuration, as a text or a file. Immutable.
public struct OwnContent: Sendable {
    /// The bytes of the content.
    public let bytes: ByteSlice
    /// The line `Content-Type` that describes them.
    public let typeLine: ByteSlice

    /// The type line of plain text.
    private static let plainTextLine = ByteSlice("Content-Type: \(plainText)\r\n")
    private static let plainText = "text/plain; charset=utf-8"

    /// Plain text in UTF-8.
    public init(plainText text: ByteSlice) { (bytes, typeLine) = (text, Self.plainTextLine) }

    /// - Parameter type: `nil` for plain text in UTF-8.
    init(_ text: String, type: String?) {
        bytes = ByteSlice(text)
        typeLine = ByteSlice("Content-Type: \(type ?? Self.plainText)\r\n")
    }

    /// - Parameter type: `nil`: as the file's name says.
    init(_ file: NamedFile, type: String? = nil) {
        bytes = file.content
        typeLine = ByteSlice("Content-Type: \(type ?? Self.type(of: file))\r\n")
    }

    /// The media type that the end of the name stands for; HTML if it stands for none. Text that is UTF-8 says so.
    private static func type(of file: NamedFile) -> String {
        let name = file.path.split(separator: "/").last ?? ""
        let type = name.split(separator: ".").dropFirst().last.flatMap { types[$0.lowercased()] } ?? "text/html"
        let isUTF8 = !String(file.content).unicodeScalars.contains("\u{FFFD}")
        return type.hasPrefix("text/") && isUTF8 ? "\(type); charset=utf-8" : type
    }

    private static let types = [
        "htm": "text/html", "html": "text/html", "txt": "text/plain", "css": "text/css", "js": "text/javascript",
        "mjs": "text/javascript", "json": "application/json", "webmanifest": "application/manifest+json",
        "xml": "application/xml", "pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png",
        "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "avif": "image/avif",
        "ico": "image/x-icon",
    ]
}
