import Coalescing

/// The price of a call whose work does nothing: with the library, with an actor of ten lines, and with the least that
/// keeps the library's promises (`Bare`), which shows what is possible. The processor time of all threads, since other
/// programs may want the processors too. Medians of runs of all three by turns.
enum SingleFlight {
    typealias Run = @Sendable (_ times: Int) async throws -> Void

    struct Row: Sendable {
        let name: String
        let library: Run
        /// `nil` for what the actor does not do.
        let others: (actor: Run, bare: Run)?
        /// The most that the library may take, as a multiple of the actor: some 10 % above what it took with Swift 6.3.1
        /// when this was written. The goal is 1.5.
        let limit: Double?

        /// A row of callbacks.
        init(_ name: String, callbacks: @escaping Run) {
            (self.name, library, others, limit) = (name, callbacks, nil, nil)
        }

        /// - Parameter ask: asks so many times.
        init(_ name: String, limit: Double, _ ask: @escaping @Sendable (any Flights, Int) async throws -> Void) {
            self.name = "`value(for:work:)`, " + name
            library = { try await ask(LibraryFlights(), $0) }
            others = ({ try await ask(TenLines<Int, Int>(), $0) }, { try await ask(Bare<Int, Int>(), $0) })
            self.limit = limit
        }
    }

    static let rows = [
        Row("1 caller", limit: 1.75) { try await $0.alone($1) },
        Row("1 caller, work that waits", limit: 2.3) { try await $0.waiting($1) },
        Row("100 callers of one key", limit: 1.55) { try await $0.crowd($1) },
        Row("100 callers of 100 keys", limit: 1.85) { try await $0.scattered($1) },
        Row("callback, 1 caller") { Sharing.coalescing($0, joiners: 0) },
        Row("callback, 100 callers of one key") { Sharing.coalescing($0 / 100, joiners: 99) },
    ]

    /// Nanoseconds of processor time a call.
    struct Times {
        let row: Row
        let library: Double
        let others: (actor: Double, bare: Double)?
        var ratio: Double? { others.map { library / $0.actor } }
        var isWithin: Bool { (ratio ?? 0) <= row.limit ?? .infinity }

        var line: String {
            let figures = [
                library.short, others?.bare.short, others?.actor.short, ratio?.short,
                others.map { ($0.bare / $0.actor).short },
            ]
            return "| \(row.name) | " + figures.map { $0 ?? "" }.joined(separator: " | ") + " |\n"
        }
    }

    static func measure(_ row: Row) async throws -> Times {
        var (library, actor, bare): ([Double], [Double], [Double]) = ([], [], [])
        for _ in 0..<25 {
            library.append(try await time(row.library))
            guard let others = row.others else { continue }
            actor.append(try await time(others.actor))
            bare.append(try await time(others.bare))
        }
        return Times(row: row, library: library.median, others: row.others.map { _ in (actor.median, bare.median) })
    }

    static func table(_ times: [Times]) -> String {
        times.reduce(
            "| nanoseconds a call | library | bare | actor | library ÷ actor | bare ÷ actor |\n| --- | ---: | ---: | ---: | ---: | ---: |\n"
        ) { $0 + $1.line }
    }

    private static func time(_ run: Run) async throws -> Double {
        let calls = 10_000
        let began = System.processTime
        try await run(calls)
        return Double(System.processTime - began) / Double(calls)
    }
}
