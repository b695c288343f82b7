import Foundation
import Synchronization

/// One running program in front of the origin, pinned to the server's core, with its files in the plan's folder.
final class Program {
    struct Options {
        var memoryMiB = 256
        var workers = 1
        /// Whether the program runs as Debian's package configures it, with a log of all requests in a file, rather
        /// than in the way that costs it least.
        var isAsPackaged = false
        /// Whether the program will be told to reload.
        var reloads = false
        /// The size of the bare responder's body, in bytes.
        var bodyBytes = 1024
        /// Further words for the bare responder.
        var words: [String] = []
    }

    let kind: Kind
    let port: Int
    let tree: ProcessTree
    /// The time from the start to the first answer, in seconds.
    let startTime: Double
    private let child: Child
    private let folder: String

    private static let started = Atomic<Int>(0)

    /// Starts the program and waits until it answers.
    init(_ kind: Kind, _ options: Options = Options(), plan: Plan, origin: Int) throws {
        let number = Self.started.add(1, ordering: .relaxed).newValue
        self.kind = kind
        port = 20_000 + (Int(getpid()) * 37 + number) % 10_000
        folder = "\(plan.folder)/\(number)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let words = try Peer.command(kind, options, port: port, origin: origin, folder: folder, plan: plan)
        let began = System.now
        // The program ends too if this process is killed.
        let pinned = ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", options.workers == 1 ? "0" : "0,1"]
        child = try Child(pinned + words, output: "\(folder)/output")
        tree = ProcessTree(root: child.identifier)
        while System.now - began < 20_000_000_000 {
            if let caller = Caller(port: port) {
                caller.ask("/c/1/start")
                if caller.answer()?.status == 200, child.isRunning {
                    startTime = Double(System.now - began) / 1e9
                    return
                }
            }
            guard child.isRunning else { break }
            usleep(200)
        }
        child.stop()
        let told = (try? String(contentsOfFile: "\(folder)/output", encoding: .utf8)) ?? ""
        throw Problem("\(kind.name) does not answer: \(told.suffix(400))")
    }

    func signal(_ number: Int32) { child.signal(number) }
    func stop() { child.stop() }
    /// Empties the access log. The memory that the log took is then free.
    func emptyLog() { System.empty("\(folder)/access.log") }
}
