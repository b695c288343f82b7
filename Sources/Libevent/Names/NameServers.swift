import CLibevent
import Glibc

/// The name servers of one reading of `resolv.conf`, and the hosts file that was read with it: a channel of c-ares on a
/// loop.
///
/// c-ares reports which descriptors to watch and for how long to wait. It calls back only from inside `ask`, `process`
/// and `ares_destroy`. On an idle channel, `ares_destroy` does not call back.
///
/// idle ─ask→ asking ─last answer→ idle;   any ─loop ends→ over
///
/// While questions are open, the loop keeps this object alive: c-ares must not lose a channel before its callbacks have
/// come.
@safe final class NameServers {
    let loop: EventLoop
    let hosts: HostsFile
    let conf: ResolvConf
    /// The longest time a look-up takes, in nanoseconds.
    let timeout: Int64
    /// Whether a server was silent and a later one answered: do not ask the first server first again.
    private(set) var firstSeemsDead = false

    @safe private enum Channel {
        /// No question was asked yet. A channel takes 90 kB, which a loop without look-ups need not have.
        case unopened
        case open(OpaquePointer)
        case over
    }

    private var channel = Channel.unopened
    private var sockets: [Int32: NameSocket] = [:]
    private var timer: Timer?
    /// The number of questions whose callback is still to come.
    private var pending = 0

    /// The initialization for all channels of the process. c-ares requires it before threads use the library; on this
    /// system it has no effect.
    private static let library: Int32 = ares_library_init(ARES_LIB_INIT_ALL)

    /// - Parameter timeout: nanoseconds; in this time every server is asked as often as `conf` says.
    init(_ loop: EventLoop, _ conf: ResolvConf, hosts: HostsFile, timeout: Int64) {
        self.loop = loop
        self.conf = conf
        self.hosts = hosts
        self.timeout = timeout
    }

    deinit { if case .open(let channel) = channel { unsafe ares_destroy(channel) } }

    /// - Returns: `nil` if the loop has ended, or there is no memory.
    private func opened() -> OpaquePointer? {
        switch channel {
        case .open(let channel): return unsafe channel
        case .over: return nil
        case .unopened: break
        }
        let shortest: Int64 = 1_000_000
        let firstTimeout = Int32(clamping: max(shortest, conf.firstTimeout(within: timeout)) / shortest)
        var made: OpaquePointer?
        guard Self.library == 0 else { return nil }
        let status = unsafe coalesced_open_channel(
            &made, firstTimeout, Int32(clamping: conf.attempts), conf.rotates ? 1 : 0,
            { context, descriptor, reads, writes in
                unsafe watcher(context, as: NameServers.self)?
                    .watch(descriptor, reads: reads != 0, writes: writes != 0)
            }, context(self))
        guard status == 0, let made = unsafe made else { return nil }
        // c-ares does not understand addresses with a scope; give it the others.
        let servers = conf.servers.filter { !$0.hasScope }.map(\.description).joined(separator: ",")
        _ = unsafe ares_set_servers_ports_csv(made, servers)
        unsafe channel = .open(made)
        return unsafe made
    }

    /// Asks for the addresses of `name`, once.
    /// - Parameters:
    ///   - name: the exact name to ask for; no domain is appended.
    ///   - receive: called once, perhaps before this method returns, with addresses without a port. It may call `ask`
    ///     again, but must not call other code: c-ares is on the stack below it.
    func ask(
        _ name: String, _ family: Resolver.Family, receive: @escaping (Result<Resolver.Found, ResolveError>) -> Void
    ) {
        guard let channel = unsafe opened() else { return receive(.failure(.localFailure)) }
        pending += 1
        // Do not let c-ares sort by RFC 6724, for which it would open sockets.
        var hints = ares_addrinfo_hints()
        hints.ai_flags = ARES_AI_NOSORT
        hints.ai_family = family.code
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        let parcel = unsafe Unmanaged.passRetained(Question(of: self, receive)).toOpaque()
        unsafe ares_getaddrinfo(
            channel, name, nil, &hints,
            { parcel, status, timeouts, found in
                defer { if let found = unsafe found { unsafe ares_freeaddrinfo(found) } }
                guard let parcel = unsafe parcel else { return }
                let question = unsafe Unmanaged<Question>.fromOpaque(parcel).takeRetainedValue()
                unsafe question.servers.received(status, timeouts, found, question)
            }, parcel)
        becameOther()
    }

    private final class Question {
        let servers: NameServers
        let receive: (Result<Resolver.Found, ResolveError>) -> Void

        init(of servers: NameServers, _ receive: @escaping (Result<Resolver.Found, ResolveError>) -> Void) {
            self.servers = servers
            self.receive = receive
        }
    }

    private func received(
        _ status: Int32, _ timeouts: Int32, _ found: UnsafeMutablePointer<ares_addrinfo>?, _ question: Question
    ) {
        pending -= 1
        if let error = ResolveError(coalesced_outcome_of(status)) { return question.receive(.failure(error)) }
        if timeouts > 0, conf.servers.count > 1 { firstSeemsDead = true }
        question.receive(.success(unsafe Self.read(found)))
    }

    private static func read(_ found: UnsafeMutablePointer<ares_addrinfo>?) -> Resolver.Found {
        var addresses: [SocketAddress] = []
        // A value with more than 31 bits is not a valid TTL (RFC 2181 §8).
        var seconds = Int32.max
        var node = unsafe found?.pointee.nodes
        while let entry = unsafe node, addresses.count < Resolver.mostAddresses {
            unsafe node = entry.pointee.ai_next
            // `ai_addr` points to `ai_addrlen` bytes of some sockaddr_*.
            let bytes = unsafe UnsafeRawBufferPointer(
                start: entry.pointee.ai_addr, count: Int(entry.pointee.ai_addrlen))
            guard let address = unsafe SocketAddress.read(bytes, length: bytes.count) else { continue }
            addresses.append(address)
            seconds = unsafe min(seconds, entry.pointee.ai_ttl)
        }
        // The alias's TTL counts too: the alias may be changed before the address is.
        var alias = unsafe found?.pointee.cnames
        while let entry = unsafe alias {
            unsafe alias = entry.pointee.next
            seconds = unsafe min(seconds, entry.pointee.ttl)
        }
        return Resolver.Found(addresses, timeToLive: Int64(max(0, seconds)) * 1_000_000_000)
    }

    // MARK: On the loop

    /// Called by c-ares to watch a descriptor for reading or writing, and for neither before it closes the descriptor.
    private func watch(_ descriptor: Int32, reads: Bool, writes: Bool) {
        guard reads || writes else { return sockets[descriptor] = nil }
        let socket = sockets[descriptor] ?? NameSocket(descriptor, of: self)
        sockets[descriptor] = socket
        socket.watch(reads: reads, writes: writes)
    }

    /// - Parameters: descriptors that can be read and written; -1 for none.
    fileprivate func process(readable: Int32, writable: Int32) {
        guard case .open(let channel) = channel else { return }
        unsafe ares_process_fd(channel, readable, writable)
        becameOther()
    }

    /// Updates the timer after c-ares has run. c-ares may still be on the stack, since its callbacks may call `ask`.
    private func becameOther() {
        timer?.cancel()
        timer = nil
        loop.nameServers[ObjectIdentifier(self)] = pending > 0 ? self : nil
        guard pending > 0, case .open(let channel) = channel else { return }
        var wait = timeval()
        guard unsafe ares_timeout(channel, nil, &wait) != nil else { return }
        let nanoseconds = Int64(wait.tv_sec) * 1_000_000_000 + Int64(wait.tv_usec) * 1000
        // c-ares rounds down to the millisecond.
        timer = loop.schedule(after: nanoseconds + 1_000_000) { [weak self] in self?.process(readable: -1, writable: -1)
        }
    }

    /// Ends every question without an answer.
    func loopEnds() {
        timer?.cancel()
        timer = nil
        guard case .open(let last) = channel else { return }
        // Questions asked inside the callbacks that come now are refused.
        channel = .over
        unsafe ares_destroy(last)
        loop.nameServers[ObjectIdentifier(self)] = nil
    }
}

/// A descriptor that c-ares opens and closes, and its watches on the loop.
@safe private final class NameSocket {
    private let descriptor: Int32
    /// The owner of this socket.
    private unowned let servers: NameServers
    private var readWatch: Watch?
    private var writeWatch: Watch?

    init(_ descriptor: Int32, of servers: NameServers) {
        self.descriptor = descriptor
        self.servers = servers
    }

    func watch(reads: Bool, writes: Bool) {
        if !reads { readWatch = nil } else if readWatch == nil { readWatch = made(EV_READ) }
        if !writes { writeWatch = nil } else if writeWatch == nil { writeWatch = made(EV_WRITE) }
    }

    /// If the descriptor cannot be watched, the question runs into its timeout.
    private func made(_ kind: Int32) -> Watch? {
        try? unsafe Watch(servers.loop.base, descriptor, kind | EV_PERSIST, context: context(self)) {
            _, kinds, context in
            unsafe watcher(context, as: NameSocket.self)?.ready(Int32(kinds))
        }
    }

    private func ready(_ kinds: Int32) {
        let servers = servers
        servers.loop.noteBeginning()
        servers.process(
            readable: kinds & EV_READ != 0 ? descriptor : -1, writable: kinds & EV_WRITE != 0 ? descriptor : -1)
    }
}
