import Foundation
import Synchronization

/// Hits of the program while prefixes are purged in its large store, again and again for some seconds. The program has
/// one worker, and both cores; the load has core 1.
enum ProgramPurges {
    private static let seconds = 4.0

    /// - Parameter entries: how many responses are stored, of 100 bytes each.
    static func table(entries: Int) throws -> String {
        let folder = NSTemporaryDirectory() + "program-purges-\(getpid())"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let port = 20_000 + Int(getpid()) % 10_000
        let (admin, origin) = (port + 1, try Origin(port: port + 2))
        let settings = """
            workers: 1
            listen: [127.0.0.1:\(port)]
            storage: {memory: \(max(64, entries / 512))MiB}
            admin: {address: "127.0.0.1:\(admin)"}
            access-log: {target: "off"}
            upstreams: [{name: origin, servers: ["http://127.0.0.1:\(origin.port)"]}]
            routes: [{upstream: origin}]

            """
        try settings.write(toFile: "\(folder)/settings.yaml", atomically: false, encoding: .utf8)
        let program = try Child(
            [
                "setpriv", "--pdeathsig", "TERM", "taskset", "-c", "0,1", Plan().coalesced, "serve", "--config",
                "\(folder)/settings.yaml",
            ], output: "\(folder)/output")
        defer { program.stop() }
        try fill(entries, port: port, origin, unless: { !program.isRunning })
        System.pin(toCore: 1)
        var rows = ""
        for connections in [1, 64] {
            for purges in [0, 1, 60] {
                rows += try row(connections, purges, port: port, admin: admin, path: "/c/100/hit")
            }
        }
        return "\(entries) responses stored\n\n"
            + "| connections | purges at once | walks | ms a walk | hits/s | p50, p99, p99.9, µs |\n"
            + "| ---: | ---: | ---: | ---: | ---: | ---: |\n" + rows
    }

    private static func fill(_ entries: Int, port: Int, _ origin: Origin, unless isOver: () -> Bool) throws {
        while Caller(port: port) == nil {
            if isOver() { throw Problem("the program has ended") }
            System.nap(milliseconds: 10)
        }
        let load = Load(path: "/c/100/RUN/" + RequestText.number, numbers: .counting, length: 100)
        while origin.asked < entries {
            let before = origin.asked
            var loop = load.loop(port: port, isBare: false)
            loop.run(nanoseconds: 1_000_000_000) { _ in }
            guard origin.asked > before else { throw Problem("the program fetches nothing") }
        }
    }

    private static func row(_ connections: Int, _ purges: Int, port: Int, admin: Int, path: String) throws -> String {
        guard Caller.fetch([path], size: 100, port: port) else { throw Problem("no response") }
        let purger = purges > 0 ? Purger(purges, admin: admin, port: port) : nil
        var loop = Load(path: path, connections: connections, length: 100).loop(port: port, isBare: false)
        loop.run(nanoseconds: Int64(seconds * 1e9)) { _ in }
        let (walks, milliseconds) = purger?.stop() ?? (0, 0)
        let figures = [50, 99, 99.9].map { loop.latencies.percentile($0).short }.joined(separator: ", ")
        let each = walks > 0 ? (milliseconds / Double(walks)).short : ""
        return
            "| \(connections) | \(purges) | \(walks) | \(each) | \((Double(loop.answers) / seconds).short) | \(figures) |\n"
    }

    /// A thread that purges prefixes of nothing that is stored, and purges again when all are answered.
    private final class Purger: Sendable {
        private let isOver = Atomic(false)
        private let done = DispatchSemaphore(value: 0)
        private let result = Mutex((walks: 0, milliseconds: 0.0))

        init(_ purges: Int, admin: Int, port: Int) {
            System.startThread { [self] in
                while !isOver.load(ordering: .relaxed) {
                    let callers = (0..<purges).compactMap { _ in Caller(port: admin) }
                    let began = System.now
                    for (number, caller) in callers.enumerated() {
                        let line = "prefix http://127.0.0.1:\(port)/none/\(number)/"
                        let head =
                            "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(line.utf8.count)\r\n\r\n"
                        caller.send(Array((head + line).utf8))
                    }
                    let answered = callers.filter { $0.answer()?.status == 200 }
                    precondition(answered.count == purges, "\(purges - answered.count) purges failed")
                    result.withLock { $0 = ($0.walks + 1, $0.milliseconds + Double(System.now - began) / 1e6) }
                }
                done.signal()
            }
        }

        func stop() -> (walks: Int, milliseconds: Double) {
            isOver.store(true, ordering: .relaxed)
            done.wait()
            return result.withLock { $0 }
        }
    }
}
