import Glibc

/// A small file below a folder, found without following a symbolic link below that folder: who may write there cannot
/// lead the reader elsewhere.
public enum FolderFile {
    /// Reads a file. Waits for the disk: not for loops that serve clients.
    /// - Parameters:
    ///   - components: the names from the folder to the file; none is empty, `.` or `..`, or has a slash.
    ///   - most: a larger file is not read.
    /// - Returns: `nil` if there is no such regular file, or this program may not read it.
    public static func read(_ components: [String], below folder: String, most: Int) -> [UInt8]? {
        guard let name = components.last, components.allSatisfy({ isName($0) }) else { return nil }
        let root = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard root >= 0 else { return nil }
        var place = Descriptor(adopting: root)
        for component in components.dropLast() {
            let next = unsafe openat(place.rawValue, component, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard next >= 0 else { return nil }
            place = Descriptor(adopting: next)
        }
        // `O_NONBLOCK`: opening a FIFO would wait for its writer.
        let number = unsafe openat(place.rawValue, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard number >= 0 else { return nil }
        let file = Descriptor(adopting: number)
        var status = stat()
        guard unsafe fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= most
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: most + 1)
        var count = 0
        while count <= most {
            let left = bytes.count - count
            let got = unsafe bytes.withUnsafeMutableBytes { memory in
                unsafe Glibc.read(file.rawValue, memory.baseAddress?.advanced(by: count), left)
            }
            guard got >= 0 else { return nil }
            if got == 0 { break }
            count += got
        }
        return count <= most ? Array(bytes[..<count]) : nil
    }

    private static func isName(_ text: String) -> Bool {
        !text.isEmpty && text != "." && text != ".." && text.utf8.allSatisfy { $0 != 0x2f && $0 != 0 }
    }
}
