import Glibc
import Testing

/// An upgrade in which a signal comes at the wrong moment.
@Suite(.scenario) struct UpgradeSignalTests {
    /// `.ci/long` tries more.
    private static let rounds = System.environment("COALESCED_TEST_ROUNDS").flatMap { Int($0) } ?? 1

    /// The children of a process, as soon as the kernel has them.
    private func children(of process: pid_t) -> [pid_t] {
        let tasks = "/proc/\(process)/task"
        return System.list(tasks).flatMap { task in
            System.contents(of: "\(tasks)/\(task)/children").split(separator: " ").compactMap { pid_t($0) }
        }
    }

    /// Begins an upgrade, and returns the new program's process.
    private func begin(_ proxy: Program, at process: pid_t) throws -> pid_t {
        let known = proxy.successors
        Spawn.signal(process, SIGUSR2)
        let deadline = Instant.now + .seconds(20)
        while true {
            // It has started no other program, unless a signal of the former round came late.
            if let new = children(of: process).first { return new }
            // On a busy machine it may have taken over, and the old one have ended, before this thread went on.
            if let new = proxy.successors.last, !known.contains(new) { return new }
            guard .now < deadline else { throw Late(what: "a new process", place: "begin") }
        }
    }

    /// As `systemctl kill` and `pkill` do, which send a signal to all processes.
    @Test(arguments: [SIGHUP, SIGUSR1, SIGUSR2])
    func `a signal does not end the new program, however early it comes`(_ signal: Int32) throws {
        try scenario { origin, proxy in
            origin.on("/x") { _ in [.answer(200, body: "x")] }
            var (current, upgrades) = (proxy.child, 0)
            for round in 0..<(8 * Self.rounds) {
                let next = try begin(proxy, at: current)
                for _ in 0...(round % 8) {
                    System.nap(.milliseconds(1))
                    Spawn.signal(next, signal)
                }
                try eventually("it is upgraded; \(proxy.diagnostics.suffix(2000))", within: .seconds(20)) {
                    let all = proxy.successors
                    // A `SIGUSR2` that comes when the new program serves already starts one more.
                    return all.count > upgrades && all.last.map { children(of: $0).isEmpty } == true
                        && proxy.diagnostics.matches(of: /the former program accepts no more/).count == all.count
                }
                let last = try #require(proxy.successors.last)
                #expect(proxy.successors.contains(next))
                if signal != SIGUSR2 { #expect(last == next && proxy.successors.count == round + 1) }
                upgrades = proxy.successors.count
                #expect(try proxy.get("/x").text == "x")
                if signal == SIGHUP, round == 0 {
                    try eventually("it is followed") { proxy.diagnostics.contains("info: reloaded") }
                }
                current = last
            }
            #expect(try proxy.exited() == .code(0))
            #expect(!proxy.diagnostics.contains("not upgraded: /"), "\(proxy.diagnostics)")
        }
    }

    @Test func `if the old program is killed, the new one takes over all the same, however early that is`() throws {
        for round in 0..<(12 * Self.rounds) {
            try scenario(.workers(2)) { origin, proxy in
                origin.on("/x") { _ in [.answer(200, body: "x")] }
                let next = try begin(proxy, at: proxy.child)
                defer { Spawn.signal(next, SIGKILL) }
                System.nap(.milliseconds(round % 12 * 5))
                Spawn.signal(proxy.child, SIGKILL)
                // On a fast machine it may have ended by itself.
                _ = try proxy.exited()
                try eventually("the new one serves; \(proxy.diagnostics)") {
                    proxy.diagnostics.contains("the former program accepts no more")
                }
                #expect(try proxy.get("/x").text == "x")
                #expect(!proxy.diagnostics.contains("cannot listen"), "\(proxy.diagnostics)")
            }
        }
    }
}
