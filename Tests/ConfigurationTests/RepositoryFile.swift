import Glibc

extension String {
    struct Unreadable: Error { let path: String }

    /// A file of this repository, found from where this source stands.
    init(contentsOfRepositoryFile path: String) throws {
        let path = Self.place(of: path)
        guard let file = unsafe fopen(path, "r") else { throw Unreadable(path: path) }
        defer { unsafe fclose(file) }
        var bytes: [UInt8] = []
        while case let byte = unsafe getc(file), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
        self.init(decoding: bytes, as: UTF8.self)
    }

    /// Writes a file of this repository.
    func write(toRepositoryFile path: String) throws {
        let path = Self.place(of: path)
        guard let file = unsafe fopen(path, "w") else { throw Unreadable(path: path) }
        for byte in utf8 { _ = unsafe putc(Int32(byte), file) }
        guard unsafe fclose(file) == 0 else { throw Unreadable(path: path) }
    }

    private static func place(of path: String, from source: String = #filePath) -> String {
        "/\(source.split(separator: "/").dropLast(3).joined(separator: "/"))/\(path)"
    }
}
