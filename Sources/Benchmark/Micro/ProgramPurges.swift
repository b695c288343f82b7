import Foundation
import Synchronization

/// Requests to the program while responses of its large store are purged: prefixes of nothing that is stored, again and
/// again for some seconds, or a tag that a tenth of the responses have. The program has one worker, and both cores; the
/// load has core 1.
enum ProgramPurges {
    private static let seconds = 4.0

    /// Hits while prefixes are purged.
    /// - Parameter entries: how many responses are stored, of 100 bytes each.
    static func table(entries: Int) throws -> String {
        try withProgram(storing: entries, "/c/100/" + RequestText.number) { port, admin in
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
    }

    /// Requests for any of the responses, which have three tags each, while a tag is purged that each tenth of them has:
    /// in turns without a purge and with one, which comes after a second, each of another tag.
    static func tagTable(entries: Int) throws -> String {
        let path = "/t/100/" + RequestText.number
        return try withProgram(storing: entries, path) { port, admin in
            var (rows, purges) = ("", 0)
            for connections in [1, 64] {
                for isPurged in [false, true, false, true, false, true] {
                    var random = SystemRandomNumberGenerator()
                    let numbers = (0..<100_000).map { _ in Int.random(in: 0..<entries, using: &random) }
                    var loop = Load(path: path, connections: connections, numbers: .drawn(numbers), length: 100)
                        .loop(port: port, isBare: false)
                    let purger = isPurged ? TagPurger("ten-\(purges)", admin: admin) : nil
                    purges += isPurged ? 1 : 0
                    loop.run(nanoseconds: Int64(seconds * 1e9)) { _ in }
                    let purge = purger.map { $0.answer } ?? ""
                    let figures = [50, 99, 99.9, 100].map { loop.latencies.percentile($0).short }.joined(
                        separator: ", ")
                    rows +=
                        "| \(connections) | \(purge) | \((Double(loop.answers) / seconds).short) | \(figures) | \(loop.wrong + loop.failures) |\n"
                }
            }
            return "\(entries) responses stored, with 3 tags each\n\n"
                + "| connections | the purge | requests/s | p50, p99, p99.9, longest, µs | errors |\n"
                + "| ---: | ---: | ---: | ---: | ---: |\n" + rows
        }
    }

    /// - Parameter path: of the responses that are stored before.
    private static func withProgram(
        storing entries: Int, _ path: String, _ measure: (_ port: Int, _ admin: Int) throws -> String
    ) throws -> String {
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
        try fill(entries, path, port: port, origin, unless: { !program.isRunning })
        System.pin(toCore: 1)
        return try measure(port, admin)
    }

    private static func fill(
        _ entries: Int, _ path: String, port: Int, _ origin: Origin, unless isOver: () -> Bool
    ) throws {
        while Caller(port: port) == nil {
            if isOver() { throw Problem("the program has ended") }
            System.nap(milliseconds: 10)
        }
        while origin.asked < entries {
            let before = origin.asked
            let next = Array(before..<min(before + 20_000, entries))
            var loop = Load(path: path, numbers: .drawn(next), length: 100).loop(port: port, isBare: false)
            loop.run(nanoseconds: 500_000_000) { _ in }
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

    /// A thread that purges a tag after a second.
    private final class TagPurger: Sendable {
        private let done = DispatchSemaphore(value: 0)
        private let result = Mutex("")

        init(_ tag: String, admin: Int) {
            System.startThread { [self] in
                System.nap(milliseconds: 1000)
                let line = "tag \(tag)"
                let head = "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(line.utf8.count)\r\n\r\n"
                let caller = Caller(port: admin)
                let began = System.now
                caller?.send(Array((head + line).utf8))
                let status = caller?.answer()?.status ?? 0
                result.withLock { $0 = "\(status) in \((Double(System.now - began) / 1e6).short) ms" }
                done.signal()
            }
        }

        var answer: String {
            done.wait()
            return result.withLock { $0 }
        }
    }
}
