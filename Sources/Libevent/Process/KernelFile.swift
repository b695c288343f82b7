import Glibc

/// A small file of the system, such as one under `/proc` or `/sys` through which the kernel reports something.
enum KernelFile {
    /// Such a file has only a few lines.
    private static let mostBytes = 64 << 10

    /// The whole text of the file; `nil` if there is no such file, or it may not be read.
    static func text(of path: String) -> String? { text(of: path, most: mostBytes) }

    /// - Parameter most: the largest number of bytes to read.
    static func text(of path: String, most: Int) -> String? {
        bytes(of: path, most: most).map { String(decoding: $0, as: UTF8.self) }
    }

    /// As `text(of:most:)`.
    static func bytes(of path: String, most: Int) -> [UInt8]? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while text.count < most {
            let count = unsafe read(file, &piece, piece.count)
            guard count >= 0 else { return nil }
            if count == 0 { break }
            text += piece[..<count]
        }
        return text
    }
}
