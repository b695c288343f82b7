import Glibc
import Libevent
import Synchronization

let anyPort = SocketAddress.ipv4(.loopback, port: 0)

/// A path that no other call gives (the cases of a test run side by side), in a folder of this run, which goes with
/// all that is in it when the run ends.
func temporaryPath(_ name: String) -> String {
    "\(temporaryFolder)/\(pathsGiven.add(1, ordering: .relaxed).newValue)-\(name)"
}

private let pathsGiven = Atomic<Int>(0)

private let temporaryFolder: String = {
    _ = unsafe mkdir(folderOfThisRun(), 0o700)
    atexit {
        let folder = folderOfThisRun()
        guard let entries = unsafe opendir(folder) else { return }
        while let entry = unsafe readdir(entries) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) {
                unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            _ = unsafe unlink("\(folder)/\(name)")
        }
        _ = unsafe closedir(entries)
        _ = unsafe rmdir(folder)
    }
    return folderOfThisRun()
}()

private func folderOfThisRun() -> String { "/tmp/libevent-tests-\(getpid())" }

/// Lets threads meet: `arrive` from each, `wait` returns when all have.
final class Gate: Sendable {
    private let open = Atomic<Int>(0)
    let expected: Int
    init(_ expected: Int) { self.expected = expected }
    func arrive() { open.add(1, ordering: .releasing) }
    func wait() { while open.load(ordering: .acquiring) < expected { sched_yield() } }
}
