import Glibc

/// Lines for the reader of standard error, from any thread. Writing never waits: what cannot be taken at once is lost.
///
/// A pipe that nobody reads fills up, and an event loop that waited there would stand still with all its clients.
/// `O_NONBLOCK` belongs to the open file, which other programs may share (a shell, whoever else writes to the log), so
/// it is set on one of our own.
public final class LineOutput: Sendable {
    /// The longest line in bytes: what a pipe takes whole or not at all (`PIPE_BUF`), so that lines of several threads
    /// do not mix. A longer one is clipped.
    public static let longest = Int(PIPE_BUF)
    private static let clippedEnd = "…\n"

    private enum Way {
        /// A file takes anything, and an open file of our own does not wait.
        case write
        case send
        /// If the file cannot be opened again: a pipe that can be written to has room for a line as long as nobody else
        /// writes.
        case ask
    }

    private let descriptor: Descriptor
    private let way: Way
    private let turn = Lock(())

    /// - Parameter number: an open descriptor, which stays the caller's.
    /// - Throws: if `number` is not open, or no descriptor is left for one of our own.
    public init(to number: Int32) throws(SystemError) {
        let file = FileKind(number)
        if case .stream = file, let own = try? Descriptor(reopening: number) {
            descriptor = own
            way = .write
            return
        }
        descriptor = try Descriptor(duplicating: number)
        way =
            switch file {
            case .disk: .write
            case .socket: .send
            case .stream: .ask
            }
    }

    /// Writes `line`, which ends with its newline.
    public func write(_ line: String) {
        var line = Self.clipped(line)
        line.withUTF8 { bytes in
            // The kernel reads as many bytes as there are. Nobody is left to tell if it fails.
            switch way {
            case .write: _ = unsafe Glibc.write(descriptor.rawValue, bytes.baseAddress, bytes.count)
            case .send:
                _ = unsafe Glibc.send(
                    descriptor.rawValue, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            case .ask:
                turn.withLock { _ in
                    guard descriptor.isWritable() else { return }
                    _ = unsafe Glibc.write(descriptor.rawValue, bytes.baseAddress, bytes.count)
                }
            }
        }
    }

    private static func clipped(_ line: String) -> String {
        guard line.utf8.count > longest else { return line }
        var end = line.utf8.index(line.startIndex, offsetBy: longest - clippedEnd.utf8.count)
        while end.samePosition(in: line.unicodeScalars) == nil { line.utf8.formIndex(before: &end) }
        return line[..<end] + clippedEnd
    }
}
