import Foundation

/// Single pieces of the hot path, counted in instructions: `valgrind --tool=callgrind` counts the same on any machine
/// with the same binary, so that a regression is visible that would drown in the noise of times.
enum Micro {
    struct Piece: Sendable {
        let name: String
        let what: String
        /// The most instructions that the piece may take: some 4 % above the count with Swift 6.3.1 when this was
        /// written. nil for code that is not the project's, or whose count varies.
        let limit: Double?
        /// How many runs are counted. The starts of two processes differ by some ten thousand instructions, which must
        /// be little beside all runs of the piece.
        var runs = 2000
        let run: @Sendable (Int) -> Void
    }

    static let pieces = [
        Piece(
            name: "parse", what: "parser: a browser's request head, 12 fields, 530 bytes", limit: 5800,
            run: { Hit().parse($0) }),
        Piece(
            name: "parse-small", what: "parser: request line and `Host`, 49 bytes", limit: 1350,
            run: { Hit().parseSmall($0) }),
        Piece(
            name: "key",
            what: "key: host and target, with its keyed hash; a hit keeps the host's part of the request before",
            limit: 900, run: { Hit().key($0) }),
        // 320 or 358 instructions, depending on whether the compiler makes the table's search a function of its own:
        // builds of one source had both.
        Piece(
            name: "look-up", what: "look-up: shard, table, variant; 10,000 stored", limit: 370,
            run: { Hit().lookUp($0) }),
        Piece(
            name: "look-up-tagged", what: "the same, where each response has three tags", limit: 400,
            run: { Hit().lookUp($0, hasTags: true) }),
        Piece(name: "freshness", what: "freshness decision", limit: 30, runs: 200_000, run: { Hit().freshness($0) }),
        Piece(
            name: "write-head", what: "head writer: stored fields, Content-Length, Age, Via, Cache-Status", limit: 460,
            run: { Hit().writeHead($0) }),
        Piece(
            name: "join-finish", what: "`CoalescibleOperation`: lead, 9 join, finish, 10 called back", limit: 33_900,
            run: { Sharing.coalescing($0) }),
        Piece(
            name: "lead-finish", what: "the same alone: lead, finish, 1 called back", limit: nil,
            run: { Sharing.coalescing($0, joiners: 0) }),
        Piece(
            name: "join-finish-foundation", what: "ten callers with Foundation's `OperationQueue`", limit: nil,
            run: { Sharing.foundation($0) }),
    ]

    /// The instructions that one of `pieces` takes; nil if valgrind failed.
    struct Count {
        let piece: Piece
        let instructions: Double?
        /// A piece with a limit that could not be counted fails, like a piece that exceeds its limit.
        var isWithin: Bool { piece.limit.map { limit in instructions.map { $0 <= limit } ?? false } ?? true }
    }

    static func table(_ counts: [Count]) -> String {
        counts.reduce("| piece | instructions |\n| --- | ---: |\n") {
            $0 + "| \($1.piece.what) | \($1.instructions?.short ?? "valgrind failed") |\n"
        }
    }

    /// Instructions of one run of each piece. Two series of different length are subtracted, which removes the
    /// program's start.
    static func count(_ pieces: [Piece] = pieces) -> [Count] {
        guard Shell.has("valgrind") else { return pieces.map { Count(piece: $0, instructions: nil) } }
        let folder = NSTemporaryDirectory() + "coalesced-micro-\(getpid())"
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        // Valgrind 3.19 stumbles over the compiler's debugging information.
        let own =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        _ = Shell.output(["objcopy", "--strip-debug", own, "\(folder)/Benchmark"])
        func count(_ piece: Piece, _ times: Int) -> Double? {
            let told = Shell.output([
                "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "\(folder)/Benchmark", "micro",
                piece.name, "\(times)",
            ])
            let line = told?.split(separator: "\n").first { $0.contains("Collected :") }
            return line?.split(separator: " ").last.flatMap { Double($0) }
        }
        let few = 500
        return pieces.map { piece in
            guard let low = count(piece, few), let high = count(piece, few + piece.runs) else {
                return Count(piece: piece, instructions: nil)
            }
            return Count(piece: piece, instructions: (high - low) / Double(piece.runs))
        }
    }
}
