import Glibc
import Synchronization

/// A FIFO whose reader is the test: it reads when it is told to, or goes away.
final class Pipe: Sendable {
    let path: String
    private let reader: Int32
    private let isOpen = Once()

    /// - Parameter capacity: bytes it holds, a page at least.
    init(at path: String, capacity: Int32 = 4096) throws {
        self.path = path
        guard unsafe mkfifo(path, 0o600) == 0 else { throw System.Failure(call: "mkfifo \(path)", code: errno) }
        reader = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard reader >= 0 else { throw System.Failure(call: "open \(path)", code: errno) }
        // F_SETPIPE_SZ
        guard fcntl(reader, 1031, capacity) >= 0 else { throw System.Failure(call: "fcntl", code: errno) }
    }

    deinit { stopReading() }

    /// All that is in it.
    func read() -> String {
        var piece = [UInt8](repeating: 0, count: 65536)
        var all: [UInt8] = []
        while case .bytes(let count) = Socket.read(reader, into: &piece) { all += piece[..<count] }
        return String(decoding: all, as: UTF8.self)
    }

    /// Leaves no room in it for a byte.
    func fill() throws {
        let writer = unsafe open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        guard writer >= 0 else { throw System.Failure(call: "open \(path)", code: errno) }
        defer { Socket.close(writer) }
        var byte: UInt8 = 0x2E
        while unsafe write(writer, &byte, 1) == 1 {}
    }

    /// From now on it is a broken pipe.
    func stopReading() { isOpen.run { Socket.close(reader) } }
}

/// Does something the first time only.
private final class Once: Sendable {
    private let done = Atomic(false)
    func run(_ body: () -> Void) { if !done.exchange(true, ordering: .relaxed) { body() } }
}
