import Glibc

extension String {
    struct Unreadable: Error { let path: String }

    /// A file of this repository, found from where this source stands.
    init(contentsOfRepositoryFile path: String, from source: String = #filePath) throws {
        let root = source.split(separator: "/").dropLast(3).joined(separator: "/")
        let path = "/\(root)/\(path)"
        guard let file = unsafe fopen(path, "r") else { throw Unreadable(path: path) }
        defer { unsafe fclose(file) }
        var bytes: [UInt8] = []
        while case let byte = unsafe getc(file), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
        self.init(decoding: bytes, as: UTF8.self)
    }
}
