import Foundation

/// Pieces of the hot path by themselves, counted in instructions: `valgrind --tool=callgrind` counts the same on any machine with the
/// same binary, so that a regression is seen where times would drown in noise.
enum Micro {
    struct Piece: Sendable {
        let name: String
        let what: String
        let run: @Sendable (Int) -> Void
    }

    static let pieces = [
        Piece(name: "parse", what: "parser: a browser's request head, 12 fields, 530 bytes", run: { Hit().parse($0) }),
        Piece(name: "parse-small", what: "parser: request line and `Host`, 49 bytes", run: { Hit().parseSmall($0) }),
        Piece(name: "key", what: "key: host and target, with its keyed hash", run: { Hit().key($0) }),
        Piece(name: "look-up", what: "look-up: shard, table, variant; 10,000 stored", run: { Hit().lookUp($0) }),
        Piece(name: "freshness", what: "freshness decision", run: { Hit().freshness($0) }),
        Piece(name: "write-head", what: "head writer: stored fields, Content-Length, Age, Via, Cache-Status", run: { Hit().writeHead($0) }),
        Piece(name: "join-finish", what: "`CoalescibleOperation`: lead, 9 join, finish, 10 called back", run: { Sharing.coalescing($0) }),
        Piece(name: "join-finish-foundation", what: "the same with Foundation's `OperationQueue`", run: { Sharing.foundation($0) }),
    ]

    /// A table of instructions a run, each from two runs of different length, which takes the start away.
    static func table() -> String {
        guard Shell.has("valgrind") else { return "valgrind is not installed" }
        let folder = NSTemporaryDirectory() + "coalesced-micro-\(getpid())"
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // Valgrind 3.19 stumbles over the compiler's debugging information.
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        _ = Shell.output(["objcopy", "--strip-debug", own, "\(folder)/Benchmark"])
        func count(_ piece: Piece, _ times: Int) -> Double? {
            let told = Shell.output([
                "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "\(folder)/Benchmark", "micro", piece.name, "\(times)",
            ])
            let line = told?.split(separator: "\n").first { $0.contains("Collected :") }
            return line?.split(separator: " ").last.flatMap { Double($0) }
        }
        var text = "| piece | instructions |\n| --- | ---: |\n"
        for piece in pieces {
            let (few, many) = (500, 2500)
            guard let low = count(piece, few), let high = count(piece, many) else {
                text += "| \(piece.what) | valgrind failed |\n"
                continue
            }
            text += "| \(piece.what) | \(((high - low) / Double(many - few)).short) |\n"
        }
        return text
    }
}
