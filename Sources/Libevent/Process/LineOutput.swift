import Bytes
import Glibc

/// Writes lines to standard error, or to another descriptor, from any thread. Writing never waits: a line that the file
/// does not take at once is lost.
///
/// A pipe that no program reads fills up, and an event loop that waited there would stand still with all its clients.
/// `O_NONBLOCK` belongs to the open file, which other programs may share (a shell, or another writer of the log), so it
/// is set on an open file of this program's own.
public final class LineOutput: Sendable {
    /// The longest line in bytes (`PIPE_BUF`). A pipe takes a line of this length whole or not at all, so that lines of
    /// several threads do not mix. A longer line is clipped.
    public static let longest = Int(PIPE_BUF)
    private static let clippedEnd = "…\n"

    private enum Way {
        /// `write`: a disk takes all bytes, and a reopened file is non-blocking.
        case write
        case send
        /// Poll, then write, if the file cannot be reopened: a pipe that can be written to has room for a line as long
        /// as no other thread or program writes.
        case ask
    }

    private let descriptor: Descriptor
    private let way: Way
    private let turn = Guarded(())

    /// - Parameter number: an open descriptor, which the caller keeps.
    /// - Throws: if `number` is not open, or no descriptor is left for the duplicate.
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
            // The kernel only reads the bytes. A failure cannot be reported anywhere.
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
