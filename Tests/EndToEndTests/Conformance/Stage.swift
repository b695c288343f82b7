import Synchronization
import Testing

/// Where cases are performed: one origin, and one proxy before it, shared by all.
final class Stage: Sendable {
    @TaskLocal static var shared: Stage?

    let proxy: any Peer & Sendable
    /// coalesced tells more than others: `Cache-Status`, and its own name.
    let isOurs: Bool
    let board: Board
    private let origin: ScriptedOrigin
    private let program: Program?
    private let statusPages = Mutex(())

    /// coalesced.
    init() throws {
        board = Board()
        origin = try board.openOrigin()
        let program = try Program.serve(file: Self.configuration(upstream: origin.url))
        (proxy, self.program, isOurs) = (program, program, true)
    }

    /// Another proxy, before an origin that is there already.
    init(_ proxy: any Peer & Sendable, board: Board, origin: ScriptedOrigin) {
        (self.proxy, self.board, self.origin) = (proxy, board, origin)
        (program, isOurs) = (nil, false)
    }

    func stop() {
        if let program, let exit = program.exit() {
            Issue.record("the program ended with \(exit):\n\(program.diagnostics.suffix(4000))")
        }
        program?.stop()
        origin.stop()
    }

    /// Waits until no fetch below `path` is in flight: a client may have the last byte it waits for, or a 304, before
    /// the response is stored.
    func waitForFetches(of path: String) throws {
        try eventually("the fetches of \(path) end") { try fetches(of: path).isEmpty }
    }

    /// Waits until so many clients wait for fetches below `path`.
    func waitForClients(_ count: Int, of path: String) throws {
        try eventually("\(count) clients wait for \(path)") {
            let waiters = try fetches(of: path).map { $0.firstMatch(of: #/"waiters" ?: ?(\d+)/#).flatMap { Int($0.1) } }
            return waiters.reduce(0) { $0 + ($1 ?? 0) } == count
        }
    }

    /// What the status page says of each fetch below `path`, from there on.
    private func fetches(of path: String) throws -> [Substring] {
        guard let program else { return [] }
        // One at a time: the admin listener takes few connections.
        let page = try statusPages.withLock { _ in try program.admin.get("/status").wholeText }
        return page.split(separator: path).dropFirst().filter { $0.first?.isNumber != true }
    }

    /// Routes by first path segment. Cases make the origin fail on purpose, so it is never left alone for that. What
    /// breaks off is not resumed, so that it can be seen as a part.
    private static func configuration(upstream url: String) -> String {
        """
        clients:
          max-connections: 5000
        storage:
          max-object-size: 1MiB
        upstreams:
          - name: origin
            servers: ["\(url)"]
            max-failures: 1000000
            max-concurrent-fetches: 5000
            resume: 0
          - name: impatient
            servers: ["\(url)"]
            max-failures: 1000000
            first-byte-timeout: 4s
        routes:
          - {path: /impatient/, upstream: impatient}
          - {path: /ignore/, upstream: origin, request-directives: ignore}
          - {path: /parts/, upstream: origin, range-misses: part}
          - {path: /uncached/, upstream: origin, cache: false}
          - {path: /drop/, upstream: origin, key: {query: {drop: [utm_source]}}}
          - {path: /keep/, upstream: origin, key: {query: {keep: [page]}}}
          - {path: /none/, upstream: origin, key: {query: none}}
          - {path: /sort/, upstream: origin, key: {sort-query: true}}
          - {path: /tenant/, upstream: origin, key: {headers: [x-tenant]}}
          - {path: /posts/, upstream: origin, store-post-answers: true}
          - {path: /theme/, upstream: origin, key: {cookies: [theme]}}
          - {upstream: origin}

        """
    }
}

/// What the origin is to say to whom, and what it was asked, by case. Under one lock: the origin's thread and all cases
/// use it.
final class Board: Sendable {
    private struct Entry {
        var reply: [Step] = [.answer(404, body: "not scripted")]
        var asked: [Received] = []
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let serial = Atomic<Int>(0)

    func openOrigin() throws -> ScriptedOrigin {
        let origin = try ScriptedOrigin()
        origin.on("*") { [self] request in answer(request) }
        return origin
    }

    /// A path that no other case has.
    func newPath(_ route: String) -> String {
        "/\(route)/\(serial.add(1, ordering: .relaxed).newValue)"
    }

    func set(_ steps: [Step], for path: String) {
        entries.withLock { $0[path, default: Entry()].reply = steps }
    }

    func asked(_ path: String) -> [Received] {
        entries.withLock { $0[path]?.asked ?? [] }
    }

    private func answer(_ request: Received) -> [Step] {
        let path = "/" + request.path.split(separator: "/").prefix(2).joined(separator: "/")
        return entries.withLock { entries in
            entries[path, default: Entry()].asked.append(request)
            return entries[path]!.reply
        }
    }
}

/// One stage for all cases of a suite, gone when the last of them is over.
struct OnStage: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let stage = try Transport.$current.withValue(Transport(of: test)) { try Stage() }
        defer { stage.stop() }
        try await Stage.$shared.withValue(stage) { try await function() }
    }
}

extension Trait where Self == OnStage {
    static var onStage: Self { Self() }
}
