import Synchronization
import Testing

/// The same conversations with other programs. Where they go another way than promised here, `Differences` says why; a
/// difference that nobody has explained fails.
@Suite(.largeScenario) struct DifferentialTests {
    @Test(.enabled(if: Rival.nginxPath != nil, "nginx is not installed: apt-get install nginx-light"))
    func `every difference from nginx is explained`() throws {
        try compare("nginx", explained: Differences.nginx) { try Rival.nginx(before: $0, at: Rival.nginxPath ?? "") }
    }

    @Test(.enabled(if: Rival.varnishPath != nil, "Varnish is not installed: apt-get install varnish"))
    func `every difference from Varnish is explained`() throws {
        try compare("Varnish", explained: Differences.varnish) {
            try Rival.varnish(before: $0, at: Rival.varnishPath ?? "")
        }
    }

    /// Cases about what every shared cache does; not those about our own routes, names and status fields.
    private static var common: [Case] {
        let ours = Set((Conformance.Companions.statusFields + Conformance.Storing.methods).map(\.promise))
        return Conformance.all.filter { $0.route == "plain" && !ours.contains($0.promise) }
    }

    private func compare(_ name: String, explained: [Differences.Group], start: (ScriptedOrigin) throws -> Rival) throws
    {
        let board = Board()
        let origin = try board.openOrigin()
        defer { origin.stop() }
        let rival = try start(origin)
        defer { rival.stop() }
        let stage = Stage(rival, board: board, origin: origin)

        let found = performAll(Self.common, on: stage)
        note("\(name) goes another way in", "\(found.count) of \(Self.common.count) cases")
        let known = explained.flatMap { group in found.keys.filter { group.covers($0) } }
        let unexplained = Self.common.filter { one in
            found[one.promise] != nil && !known.contains(one.promise) && !Differences.onTheSecond.contains(one.promise)
        }
        // Once more: the other may have used a connection to the origin that another case has ended.
        for (_, conversation) in performAll(unexplained, on: stage).sorted(by: { $0.key < $1.key }) {
            Issue.record("\(name): \(conversation)")
        }
    }

    /// Each case on a thread of its own, a few dozen at a time. What went another way, with the conversation.
    private func performAll(_ cases: [Case], on stage: Stage) -> [String: String] {
        let work = Work(cases)
        for _ in 0..<48 {
            System.startThread {
                while let next = work.next() {
                    do {
                        try CaseRun.perform(next, on: stage)
                        work.done(next, nil)
                    } catch {
                        work.done(next, "\(error)")
                    }
                }
            }
        }
        while !work.isOver { System.nap(.milliseconds(5)) }
        return work.found
    }

    private final class Work: Sendable {
        private let state: Mutex<(left: [Case], running: Int, found: [String: String])>
        init(_ cases: [Case]) { state = Mutex((cases, 0, [:])) }

        func next() -> Case? {
            state.withLock { state in
                guard let next = state.left.popLast() else { return nil }
                state.running += 1
                return next
            }
        }

        func done(_ one: Case, _ difference: String?) {
            state.withLock { state in
                state.running -= 1
                if let difference { state.found[one.promise] = difference }
            }
        }

        var isOver: Bool { state.withLock { $0.left.isEmpty && $0.running == 0 } }
        var found: [String: String] { state.withLock { $0.found } }
    }
}
