import Bytes
import CArguments
import CLibevent
import Glibc

/// The program that this one has started to take its place, on the same listening sockets (`HandOverConnection`).
///
/// Until the successor accepts, this program does too, so there is no moment in which nobody does, and no queue is lost.
///
/// ```
/// starting ─ready→ ready ─permit→ opening ─accepting→ accepting ─release→ released
///    └───────────────┴───────────────┴─────────────────────┴──────────────────┴─its end→ ending ─its exit status→ ended
/// ```
public final class SuccessorProgram: HandOverConnection {
    /// What the successor does.
    public enum Event: Sendable {
        /// It has nothing left to do but to listen and to accept, and waits for `permit`.
        case isReady
        /// It accepts connections, and waits for `release`.
        case accepts
        /// Something was purged there. It waits for `tellPurged`.
        case purges
        /// It has ended, or never was able to run.
        case ended(ProgramEnding)
    }

    private enum State { case starting, ready, opening, accepting, released, ending, ended }

    /// How often a program that has closed the connection is asked for its exit status, in nanoseconds.
    private static let reapInterval: Int64 = 10_000_000

    /// The successor's process.
    public let process: Int32
    private let onEvent: (Event) -> Void
    private var state = State.starting

    /// Starts the program at `path` with the arguments and the environment of this one.
    /// - Parameters:
    ///   - sockets: the sockets that it gets, with their use.
    ///   - onEvent: called on the loop, never from here.
    /// - Throws: if the file cannot be executed, or descriptors or memory are short.
    public init(
        at path: String, handing sockets: [(socket: ListeningSocket, use: InheritedSockets.Use)], on loop: EventLoop,
        onEvent: @escaping (Event) -> Void
    ) throws(SystemError) {
        self.onEvent = onEvent
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw .last(.socketpair) }
        let own = Descriptor(adopting: ends[0])
        let its = Descriptor(adopting: ends[1])
        let handedOn = HandedOn(giver: getpid(), uses: sockets.map { $0.socket.isKept ? nil : $0.use })
        process = try Self.spawn(
            path, [its.rawValue] + sockets.map { $0.socket.descriptor.rawValue }, announced: handedOn)
        super.init(adopting: own, on: loop)
        startReading()
    }

    /// Sends a signal, unless the program has ended.
    public func signal(_ number: Int32) { if state != .ended { _ = kill(process, number) } }

    /// Lets the successor listen and accept. Call this when it is ready.
    public func permit() {
        guard state == .ready else { return }
        state = .opening
        tell(.accept)
    }

    /// Leaves the sockets to the successor. Call this when it accepts, and this program accepts no more.
    public func release() {
        guard state == .accepting else { return }
        state = .released
        tell(.released)
    }

    /// No request here gets a response that was fetched before the purge.
    public func tellPurged() { if !isClosed { tell(.purged) } }

    override func told(_ message: Message) {
        switch (message, state) {
        case (.ready, .starting):
            state = .ready
            onEvent(.isReady)
        case (.accepting, .opening):
            state = .accepting
            onEvent(.accepts)
        case (.purge, _): onEvent(.purges)
        case (.ready, _), (.accepting, _), (.accept, _), (.released, _), (.purged, _): break
        }
    }

    override func hasEnded() {
        state = .ending
        reap()
    }

    /// The connection ends a moment before there is an exit status.
    private func reap() {
        var status: Int32 = 0
        let reaped = unsafe waitpid(process, &status, WNOHANG)
        guard reaped != 0 else {
            loop.schedule(after: Self.reapInterval) { [weak self] in self?.reap() }
            return
        }
        state = .ended
        onEvent(.ended(reaped < 0 ? .unknown : ProgramEnding(waitStatus: status)))
    }
}

extension SuccessorProgram {
    /// Variables that are true of this process only. systemd's watchdog then expects the successor, whatever its
    /// process.
    private static let notHandedOn = [HandedOn.variable, "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]

    /// Starts a program in which `descriptors` have the numbers from `InheritedSockets.firstDescriptor` on.
    private static func spawn(_ path: String, _ descriptors: [Int32], announced handedOn: HandedOn) throws(SystemError)
        -> pid_t
    {
        // First out of the way of the numbers that they get.
        let first = InheritedSockets.firstDescriptor
        var copies: [Int32] = []
        defer { for copy in copies { _ = Glibc.close(copy) } }
        for descriptor in descriptors {
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, first + Int32(descriptors.count))
            guard copy >= 0 else { throw .last(.duplicate) }
            copies.append(copy)
        }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (index, copy) in copies.enumerated() {
            unsafe posix_spawn_file_actions_adddup2(&actions, copy, first + Int32(index))
        }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        // Signals for all processes of a service may come before the program watches for them, and would end it.
        var blocked = sigset_t()
        unsafe sigemptyset(&blocked)
        for signal in [SIGHUP, SIGUSR1, SIGUSR2] { unsafe sigaddset(&blocked, signal) }
        unsafe posix_spawnattr_setsigmask(&attributes, &blocked)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        // Not `setenv`: other threads may be reading the environment.
        var variables = unsafe [strdup("\(HandedOn.variable)=\(handedOn.text)")]
        defer { for index in unsafe variables.indices { unsafe free(variables[index]) } }
        var place: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> = unsafe environ
        while let variable = unsafe place.pointee {
            let text = unsafe String(cString: variable)
            if !notHandedOn.contains(where: { text.hasPrefix($0 + "=") }) { unsafe variables.append(strdup(variable)) }
            unsafe place += 1
        }
        unsafe variables.append(nil)
        guard let arguments = unsafe coalesced_arguments() else { throw SystemError(.spawn, code: EINVAL) }
        var process: pid_t = 0
        let code = unsafe posix_spawn(&process, path, &actions, &attributes, arguments, variables)
        guard code == 0 else { throw SystemError(.spawn, code: code) }
        return process
    }
}
