import ArgumentParser
import Console
import Glibc
import Libevent

/// A demo of several machines: proxies in processes of their own, which share an engine that only they use, and the slow
/// origin behind them.
///
/// ```
/// starting ─the engine accepts, then all machines, which use it→ running ─an ending signal→ ending ─all have ended→ ended
///    └─a program ends, or time is up────────────────────────────────────────────────────────────↑
/// ```
///
/// On the main thread, whose end the programs do not survive.
final class DemoMachines {
    private enum Phase { case starting, running, ending }

    /// A program of the demo.
    private struct Member {
        let name: String
        var program: ChildProgram
    }

    /// The names of the engine's programs, of which the first that is there is used.
    private static let engines = ["redis-server", "valkey-server"]
    /// How long the programs may take to accept, or to end, in nanoseconds.
    private static let patience: Int64 = 10_000_000_000
    private static let knockInterval: Int64 = 10_000_000

    private let loop: EventLoop
    private let folder: DemoFolder
    private let engine: String
    private let addresses: [SocketAddress]
    private let isReady: (DemoMachines) -> Void
    private var members: [Member] = []
    private var phase = Phase.starting
    private var outcome = ExitCode.success
    /// The connection that finds out whether a program accepts.
    private var knock: Knock?

    /// Runs until a signal ends the demo.
    /// - Parameters:
    ///   - count: the number of machines.
    ///   - first: where the first machine listens; the others have the ports after it, or any if its port is 0.
    ///   - isReady: called once all accept.
    /// - Throws: an exit code, after a message on standard error.
    static func run(
        _ count: Int, at first: SocketAddress, originPort: UInt16, isReady: @escaping (DemoMachines) -> Void
    ) throws {
        guard let engine = System.program(named: engines) else {
            System.writeError(
                "the machines of a demo share a redis-server, and none is installed: `apt install redis-server` (or valkey-server), and try again\n"
            )
            throw ExitStatus.unavailable
        }
        guard let own = ProgramPath.find() else {
            System.writeError("the path of this program is not known, so that it cannot be started for each machine\n")
            throw ExitStatus.unavailable
        }
        let folder: DemoFolder
        do throws(System.Failure) {
            folder = try DemoFolder()
        } catch {
            System.writeError("cannot make a folder for the demo: \(error)\n")
            throw ExitStatus.unavailable
        }
        defer { folder.remove() }
        do {
            try folder.writeConfiguration(originPort: originPort)
            let loop = try EventLoop()
            let addresses = try DemoOrigin.addresses(count, from: first)
            let machines = DemoMachines(loop, folder, engine: engine, at: addresses, isReady: isReady)
            try machines.watchSignals()
            try machines.start(own)
            loop.run()
            machines.killRest()
            loop.finish()
            guard machines.outcome.isSuccess else { throw machines.outcome }
        } catch let error as ExitCode {
            throw error
        } catch {
            System.writeError("cannot start the demo: \(error)\n")
            throw ExitStatus.unavailable
        }
    }

    private init(
        _ loop: EventLoop, _ folder: DemoFolder, engine: String, at addresses: [SocketAddress],
        isReady: @escaping (DemoMachines) -> Void
    ) {
        self.loop = loop
        self.folder = folder
        self.engine = engine
        self.addresses = addresses
        self.isReady = isReady
    }

    /// Each machine: where it listens, its process, and its admin listener.
    var machines: [(address: SocketAddress, process: Int32, admin: String)] {
        addresses.enumerated().map { index, address in
            (address, members[index + 1].program.process, "unix:\(folder.admin(of: index + 1))")
        }
    }

    /// The engine's process.
    var engineProcess: Int32 { members[0].program.process }

    // MARK: Starting

    private func watchSignals() throws(SystemError) {
        for signal in Daemon.endingSignals { try loop.onSignal(signal) { [unowned self] in end() } }
        try loop.onSignal(SIGCHLD) { [unowned self] in lookForEnded() }
    }

    private func start(_ own: String) throws(SystemError) {
        loop.schedule(after: Self.patience) { [unowned self] in
            if phase == .starting {
                fail("the programs of the demo have not started in \(Self.patience / 1_000_000_000) s")
            }
        }
        try begin(
            "the engine (\(engine))", engine,
            [
                "--port", "0", "--unixsocket", folder.engine, "--unixsocketperm", "700", "--dir", folder.path,
                "--save", "", "--appendonly", "no", "--maxmemory", "64mb", "--maxmemory-policy", "volatile-lfu",
                "--logfile", folder.engineLog, "--daemonize", "no",
            ])
        whenOpen([.unix(path: folder.engine)]) { [unowned self] in
            do throws(SystemError) {
                for (index, address) in addresses.enumerated() {
                    try begin(
                        "machine \(index + 1)", own,
                        [
                            "serve", "--config", folder.configuration, "--listen", "\(address)", "--admin",
                            "unix:\(folder.admin(of: index + 1))",
                        ])
                }
            } catch {
                return fail("cannot start the demo: \(error)")
            }
            whenOpen(addresses[...]) { [unowned self] in whenSharing() }
        }
    }

    private func begin(_ name: String, _ path: String, _ arguments: [String]) throws(SystemError) {
        members.append(
            Member(
                name: name, program: try ChildProgram(at: path, arguments, withoutVariables: "COALESCED_")))
    }

    /// Calls `next` once somebody accepts at each address, unless the demo ends before.
    private func whenOpen(_ addresses: ArraySlice<SocketAddress>, _ next: @escaping () -> Void) {
        guard phase == .starting else { return }
        guard let address = addresses.first else { return next() }
        knock = try? Knock(at: address, on: loop) { [unowned self] isOpen in
            knock = nil
            if isOpen { return whenOpen(addresses.dropFirst(), next) }
            loop.schedule(after: Self.knockInterval) { [unowned self] in whenOpen(addresses, next) }
        }
        // A Unix socket that is not there yet fails at once.
        if knock == nil {
            loop.schedule(after: Self.knockInterval) { [unowned self] in whenOpen(addresses, next) }
        }
    }

    /// Calls `isReady` once all machines use the engine, unless the demo ends before.
    private func whenSharing() {
        guard phase == .starting else { return }
        guard addresses.indices.allSatisfy({ isSharing($0 + 1) }) else {
            loop.schedule(after: Self.knockInterval) { [unowned self] in whenSharing() }
            return
        }
        phase = .running
        isReady(self)
    }

    /// Whether each worker of a machine has its connection to the engine, and the log of purges was read.
    private func isSharing(_ machine: Int) -> Bool {
        let client = AdminClient(address: AdminAddress(.unix(path: folder.admin(of: machine))), remedy: "")
        guard let reply = try? client.send("GET", "/status"), let status = JSONValue(reply.body),
            let tier = status["shared"], let workers = status["workers"]?.number
        else { return false }
        return tier["knows_purges"]?.isTrue == true && tier["connections"]?.number == workers + 1
    }

    // MARK: Ending

    private func lookForEnded() {
        for index in members.indices where members[index].program.ending == nil {
            members[index].program.check()
            guard let ending = members[index].program.ending else { continue }
            switch phase {
            case .starting:
                if index == 0, let log = try? System.contents(of: folder.engineLog, mayWait: false) {
                    System.writeError(log)
                }
                fail("\(members[index].name) does not start: \(ending)")
            case .running: System.writeError("\(members[index].name): \(ending); the others go on\n")
            case .ending: break
            }
        }
        if phase == .ending, members.allSatisfy({ $0.program.ending != nil }) { loop.stop() }
    }

    private func fail(_ reason: String) {
        System.writeError("\(reason)\n")
        outcome = ExitStatus.unavailable
        end()
    }

    /// The first signal ends all programs; another one ends the demo at once.
    private func end() {
        guard phase != .ending else { return loop.stop() }
        phase = .ending
        for member in members {
            // A program that was stopped hears of no signal but this.
            member.program.signal(SIGCONT)
            member.program.signal(SIGTERM)
        }
        loop.schedule(after: Self.patience) { [unowned self] in loop.stop() }
        lookForEnded()
    }

    private func killRest() { for member in members { member.program.signal(SIGKILL) } }
}

/// One attempt to connect.
private final class Knock: Socket {
    private let completion: (_ isOpen: Bool) -> Void

    init(at address: SocketAddress, on loop: EventLoop, _ completion: @escaping (Bool) -> Void) throws(SystemError) {
        self.completion = completion
        try super.init(connectingTo: address, on: loop)
    }

    override func connected(_ error: SystemError?) {
        close()
        completion(error == nil)
    }

    override func cannotWatch(_ error: SystemError) {
        close()
        completion(false)
    }
}
