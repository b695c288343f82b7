import Glibc
import Synchronization

/// What a service manager listens at (sd_notify(3)): a Unix socket for datagrams, read when the test says so.
final class ManagerSocket: Sendable {
    let path: String
    private let descriptor: Int32

    init() throws {
        path = try System.makeTemporaryFolder() + "/notify"
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        let code = unsafe Self.withAddress(path) { unsafe bind(descriptor, $0, $1) }
        guard descriptor >= 0, code == 0 else { throw System.Failure(call: "bind \(path)", code: errno) }
    }

    deinit {
        Socket.close(descriptor)
        System.removeFolder(String(path.dropLast("/notify".count)))
    }

    /// All messages that came since, but those that come by the clock.
    func read() -> [String] { readAll().filter { !$0.hasPrefix("STATUS=") && $0 != "WATCHDOG=1" } }

    /// All messages that came since.
    func readAll() -> [String] {
        var messages: [String] = []
        var message = [UInt8](repeating: 0, count: 4096)
        while case .bytes(let count) = Socket.read(descriptor, into: &message) {
            messages.append(String(decoding: message[..<count], as: UTF8.self))
        }
        return messages
    }

    /// Fills it with messages of no meaning, until it takes no more.
    func fill() {
        let sender = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        defer { Socket.close(sender) }
        let byte: [UInt8] = [0]
        var sent = 1
        while sent == 1 { sent = unsafe Self.withAddress(path) { unsafe sendto(sender, byte, 1, 0, $0, $1) } }
    }

    private static func withAddress<Result>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result)
        -> Result
    {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        return unsafe withUnsafeBytes(of: &address) {
            unsafe body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
    }
}
