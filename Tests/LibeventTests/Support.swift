import Glibc
import Libevent
import Synchronization
import Testing

let second: Int64 = 1_000_000_000
let millisecond: Int64 = 1_000_000

/// Runs a loop on this thread until `body`'s work stops it. A test that forgets to is stopped after ten seconds, and fails.
func onLoop(_ body: (EventLoop) throws -> Void) throws {
    let loop = try EventLoop()
    loop.schedule(after: 10 * second) { [unowned loop] in
        Issue.record("nothing stopped the loop")
        loop.stop()
    }
    try body(loop)
    loop.run()
    loop.finish()
}

/// A socket whose callbacks are closures, and which collects what happened.
final class TestSocket: Socket {
    var onReadable: (TestSocket) -> Void = { $0.stopReading() }
    var onWritable: (TestSocket) -> Void = { $0.disarmWrite() }
    var onConnected: (SystemError?) -> Void = { _ in }
    var onIterationEnd: (TestSocket) -> Void = { _ in }
    var onDeinit: () -> Void = {}
    override func readable() { onReadable(self) }
    override func writable() { onWritable(self) }
    override func connected(_ error: SystemError?) { onConnected(error) }
    override func iterationEnds() { onIterationEnd(self) }
    deinit { onDeinit() }
}

func socketPair(on loop: EventLoop) -> (TestSocket, TestSocket) {
    var numbers: [Int32] = [0, 0]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let result = unsafe socketpair(AF_UNIX, type, 0, &numbers)
    precondition(result == 0)
    return (
        TestSocket(adopting: Descriptor(adopting: numbers[0]), on: loop),
        TestSocket(adopting: Descriptor(adopting: numbers[1]), on: loop)
    )
}

let anyPort = SocketAddress.ipv4(.loopback, port: 0)

/// In a folder of this run, which goes with all that is in it when the run ends.
func temporaryPath(_ name: String) -> String { "\(temporaryFolder)/\(name)" }

private let temporaryFolder: String = {
    _ = unsafe mkdir(folderOfThisRun(), 0o700)
    atexit {
        let folder = folderOfThisRun()
        guard let entries = unsafe opendir(folder) else { return }
        while let entry = unsafe readdir(entries) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            _ = unsafe unlink("\(folder)/\(name)")
        }
        _ = unsafe closedir(entries)
        _ = unsafe rmdir(folder)
    }
    return folderOfThisRun()
}()

private func folderOfThisRun() -> String { "/tmp/libevent-tests-\(getpid())" }

/// Whether the descriptor number is open.
func isOpen(_ number: Int32) -> Bool { fcntl(number, F_GETFD) >= 0 }

/// Lets threads meet: `arrive` from each, `wait` returns when all have.
final class Gate: Sendable {
    private let open = Atomic<Int>(0)
    let expected: Int
    init(_ expected: Int) { self.expected = expected }
    func arrive() { open.add(1, ordering: .releasing) }
    func wait() { while open.load(ordering: .acquiring) < expected { sched_yield() } }
}
