import Coalescing

/// The price of a call whose work does nothing, with the library and with an actor of ten lines: the processor time of
/// all threads, since other programs may want the processors too. Medians of runs of both by turns.
enum SingleFlight {
    struct Row: Sendable {
        let name: String
        let library: @Sendable (_ times: Int) async throws -> Void
        let actor: (@Sendable (_ times: Int) async throws -> Void)?
        /// The most that the library may take, as a multiple of the actor: some 10 % above what it took with Swift 6.3.1
        /// when this was written. The goal is 1.5. `nil` for what the actor does not do.
        let limit: Double?
    }

    static let rows = [
        Row(
            name: "`value(for:work:)`, 1 caller", library: { try await LibraryFlights().alone($0) },
            actor: { try await TenLines().alone($0) }, limit: 3),
        Row(
            name: "`value(for:work:)`, 1 caller, work that waits", library: { try await LibraryFlights().waiting($0) },
            actor: { try await TenLines().waiting($0) }, limit: 3),
        Row(
            name: "`value(for:work:)`, 100 callers of one key", library: { try await LibraryFlights().crowd($0) },
            actor: { try await TenLines().crowd($0) }, limit: 1.7),
        Row(
            name: "`value(for:work:)`, 100 callers of 100 keys",
            library: { try await LibraryFlights().scattered($0) }, actor: { try await TenLines().scattered($0) },
            limit: 2.3),
        Row(name: "callback, 1 caller", library: { Sharing.coalescing($0, joiners: 0) }, actor: nil, limit: nil),
        Row(
            name: "callback, 100 callers of one key", library: { Sharing.coalescing($0 / 100, joiners: 99) },
            actor: nil,
            limit: nil),
    ]

    struct Times {
        let row: Row
        /// Nanoseconds of processor time a call.
        let library: Double
        let actor: Double?
        var ratio: Double? { actor.map { library / $0 } }
        var isWithin: Bool { (ratio ?? 0) <= row.limit ?? .infinity }
    }

    static func measure(_ row: Row) async throws -> Times {
        var (library, actor): ([Double], [Double]) = ([], [])
        for _ in 0..<25 {
            library.append(try await time(row.library))
            if let other = row.actor { actor.append(try await time(other)) }
        }
        return Times(row: row, library: library.median, actor: actor.isEmpty ? nil : actor.median)
    }

    static func table(_ times: [Times]) -> String {
        times.reduce("| nanoseconds a call | library | actor | ratio |\n| --- | ---: | ---: | ---: |\n") {
            $0 + "| \($1.row.name) | \($1.library.short) | \($1.actor?.short ?? "") | \($1.ratio?.short ?? "") |\n"
        }
    }

    private static func time(_ run: @Sendable (Int) async throws -> Void) async throws -> Double {
        let calls = 10_000
        let began = System.processTime
        try await run(calls)
        return Double(System.processTime - began) / Double(calls)
    }
}
