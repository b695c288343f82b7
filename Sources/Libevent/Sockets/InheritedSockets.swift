import CLibevent
import Glibc

/// The sockets that listen already when the program starts: those that the service manager passes (sd_listen_fds(3)),
/// and those that the program before this one hands on (`SuccessorProgram`).
///
/// The service manager keeps its sockets open as well: a client that connects while the program is stopped or
/// restarting waits in the queue. Confined to the thread that takes the sockets.
public final class InheritedSockets {
    /// The reason why a passed socket cannot be used.
    public enum Failure: Error, Sendable, CustomStringConvertible {
        case notOpen(descriptor: Int32)
        case notListening(descriptor: Int32)
        case notConfigured(SocketAddress)
        case handedOverTwice(SocketAddress)

        public var description: String {
            switch self {
            case .notOpen(let descriptor): "descriptor \(descriptor), announced by LISTEN_FDS, is not open"
            case .notListening(let descriptor):
                "descriptor \(descriptor), passed by the service manager, is not a listening stream socket"
            case .notConfigured(let address):
                "the service manager passed a socket listening on \(address), which is neither in listen nor admin.address; add it there, or remove it from the socket unit"
            case .handedOverTwice(let address):
                "the service manager passed two sockets listening on \(address); remove one from the socket unit"
            }
        }
    }

    /// What the program before this one used a socket for.
    public enum Use: Sendable { case clients, admin }

    /// The first descriptor after the standard ones (`SD_LISTEN_FDS_START`).
    static let firstDescriptor: Int32 = 3

    /// The sockets that no listener has taken. `use` is `nil` for those of the service manager.
    private var rest: [(socket: ListeningSocket, use: Use?)] = []
    /// The connection to the program before this one; -1 if there is none.
    private var predecessor: Int32 = -1
    /// Whether a program before this one has handed on sockets.
    public private(set) var isHandedOn = false

    public init() {}

    deinit { if predecessor >= 0 { _ = Glibc.close(predecessor) } }

    /// Takes all sockets passed to this process, and removes the variables that announce them, which are not meant for
    /// programs that this one starts. Call this once, while there is one thread and before the program has opened any
    /// descriptor: one of those could have the number of an announced one that is missing.
    /// - Parameter places: the addresses of the settings. Each of the service manager's sockets must have one of them: on
    ///   a socket that no listener uses, clients would wait forever.
    /// - Throws: if a passed descriptor is not a listening stream socket, or has no place.
    public static func takeAll(for places: [SocketAddress]) throws(Failure) -> InheritedSockets {
        let inherited = InheritedSockets()
        let (process, count) = (take("LISTEN_PID"), take("LISTEN_FDS"))
        _ = take("LISTEN_FDNAMES")
        // The giver may have ended by now, so its connection is asked and not `getppid`. A program that only got the
        // variable from this one's environment has no such connection.
        if let handedOn = take(HandedOn.variable).flatMap(HandedOn.init),
            handedOn.giver == coalesced_peer_process(firstDescriptor)
        {
            try inherited.take(handedOn)
        } else if let process, Int32(process) == getpid(), let count = count.flatMap({ Int32($0) }), count > 0 {
            // Otherwise the sockets were passed to the program that started this one.
            for index in 0..<count { try inherited.add(firstDescriptor + index, for: nil) }
        }
        let kept = inherited.rest.filter(\.socket.isKept).map(\.socket.address)
        for (index, address) in kept.enumerated() {
            guard places.contains(address) else { throw .notConfigured(address) }
            guard !kept[..<index].contains(address) else { throw .handedOverTwice(address) }
        }
        return inherited
    }

    private static func take(_ variable: String) -> String? {
        defer { _ = unsafe unsetenv(variable) }
        return unsafe getenv(variable).map { unsafe String(cString: $0) }
    }

    private func take(_ handedOn: HandedOn) throws(Failure) {
        isHandedOn = true
        predecessor = Self.firstDescriptor
        guard fcntl(predecessor, F_SETFD, FD_CLOEXEC) == 0 else { throw .notOpen(descriptor: predecessor) }
        for (index, use) in handedOn.uses.enumerated() { try add(predecessor + 1 + Int32(index), for: use) }
    }

    private func add(_ number: Int32, for use: Use?) throws(Failure) {
        guard fcntl(number, F_SETFD, FD_CLOEXEC) == 0 else { throw .notOpen(descriptor: number) }
        guard let socket = ListeningSocket(adopting: Descriptor(adopting: number), isKept: use == nil) else {
            throw .notListening(descriptor: number)
        }
        rest.append((socket, use))
    }

    /// Takes the sockets that listen on `address`. If its port is 0, takes those of the first address of the same host
    /// that the program before this one had for the same use: so a port that the kernel chose stays.
    public func take(at address: SocketAddress, for use: Use) -> [ListeningSocket] {
        var found: SocketAddress? = address
        if address.port == 0 {
            found = rest.first { $0.use == use && $0.socket.address.withPort(0) == address }?.socket.address
        }
        let taken = rest.filter { $0.socket.address == found }.map(\.socket)
        rest.removeAll { $0.socket.address == found }
        return taken
    }

    /// The addresses of the sockets that no listener has taken.
    var addresses: [SocketAddress] { rest.map(\.socket.address) }

    /// The connection to the program that handed on the sockets; `nil` if there is none. Only the first call has it.
    public func takePredecessor() -> Descriptor? {
        guard predecessor >= 0 else { return nil }
        defer { predecessor = -1 }
        return Descriptor(adopting: predecessor)
    }

    /// Drops the clients' ports that no listener has taken. The program that handed them on has them still, and accepts
    /// what waits in their queues as the last one.
    public func dropPorts() { rest.removeAll { $0.use == .clients && $0.socket.address.port != nil } }

    /// Takes the sockets of the former admin listener, if it was at another address. Call this when the program that
    /// handed them on accepts no more.
    public func takeRest() -> [ListeningSocket] {
        let taken = rest.filter { $0.use == .admin }.map(\.socket)
        rest.removeAll { $0.use == .admin }
        for socket in taken { socket.takePath() }
        return taken
    }

    /// Drops the sockets that no listener has taken: the settings have no place for them any more, and the program that
    /// handed them on accepts what waits in their queues.
    public func dropRest() {
        for one in rest { one.socket.takePath() }
        rest.removeAll()
    }
}

/// What the environment of a program says about the descriptors that the program before it hands on. The first one is
/// the connection between the two; the others are listening sockets.
///
/// Both programs may be of different versions, so the form of the text must not change: the giver's process, then a
/// letter for each socket. A version that does not know a letter takes no socket, cannot bind the addresses, and ends.
struct HandedOn: Equatable {
    static let variable = "COALESCED_HANDED_ON"

    /// The process that hands on the sockets, which made the connection.
    let giver: pid_t
    /// `nil`: passed by the service manager.
    let uses: [InheritedSockets.Use?]

    var text: String { "\(giver):" + String(uses.map { $0 == nil ? "m" : $0 == .admin ? "a" : "c" }) }
}

extension HandedOn {
    init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let giver = pid_t(parts[0]) else { return nil }
        var uses: [InheritedSockets.Use?] = []
        for letter in parts[1] {
            switch letter {
            case "m": uses.append(nil)
            case "a": uses.append(.admin)
            case "c": uses.append(.clients)
            default: return nil
            }
        }
        self.init(giver: giver, uses: uses)
    }
}
