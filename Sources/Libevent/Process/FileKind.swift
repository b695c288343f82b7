import Glibc

/// The kind of file behind an open descriptor, as far as it matters for writing.
enum FileKind {
    /// A file on a disk: takes all bytes, as fast as the disk does.
    case disk
    case socket
    /// A pipe or a terminal: takes as many bytes as its reader leaves room for.
    case stream

    init(_ number: Int32) {
        var status = stat()
        guard unsafe fstat(number, &status) == 0 else {
            self = .stream
            return
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: self = .disk
        case S_IFSOCK: self = .socket
        default: self = .stream
        }
    }
}

extension Descriptor {
    /// Opens the file behind `number` once more, non-blocking. Programs that share `number` still wait when the file is
    /// full; the new descriptor does not. Fails for sockets, without `/proc`, if another user owns the file, and for a
    /// pipe without a reader.
    init(reopening number: Int32) throws(SystemError) {
        let own = unsafe open("/proc/self/fd/\(number)", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard own >= 0 else { throw .last(.open) }
        self.init(adopting: own)
    }

    /// Whether the file takes bytes, or reports an error, now or until `deadline`.
    func isWritable(until deadline: ContinuousClock.Instant? = nil) -> Bool {
        let patience = deadline.map { max(.zero, $0 - .now) / .milliseconds(1) } ?? 0
        var target = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
        return unsafe poll(&target, 1, Int32(patience.rounded(.up))) > 0
    }
}
