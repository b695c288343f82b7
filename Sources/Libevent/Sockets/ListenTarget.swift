/// One address of the settings, with its sockets. Loops share a port (`SO_REUSEPORT`), each with a socket of its own, over
/// which the kernel spreads the connections. A Unix socket, and a socket of the service manager, is one for all loops.
public struct ListenTarget: Sendable {
    /// The address as the settings have it; its port may be 0.
    public let configured: SocketAddress
    /// At least one.
    public let sockets: [ListeningSocket]

    /// The address to which clients connect.
    public var address: SocketAddress { sockets.first?.address ?? configured }

    /// Opens the sockets of all `addresses`, in the same order, or none. Call this before the loops accept: with a
    /// shared port the kernel would let a second program bind the same address, so this function tests whether the port
    /// is free, and a Unix socket can be bound only once.
    ///
    /// Where this program, or the one before it, has the port already, new sockets are only bound: once they listen, the
    /// kernel gives them connections that would have come to the others. `listen` begins that, when nothing else can fail.
    /// - Parameters:
    ///   - count: the number of loops.
    ///   - inherited: sockets that listen already, which are taken in place of new ones.
    ///   - use: what the sockets are for.
    ///   - former: the targets that this program has already. Those that have one of the addresses stay.
    /// - Throws: if another program listens at an address, or the machine lacks the address or may not use it
    ///   (`ListenError.reason`).
    public static func open(
        _ addresses: [SocketAddress], _ settings: Listener.Settings, forLoops count: Int,
        from inherited: InheritedSockets = InheritedSockets(), for use: InheritedSockets.Use = .clients,
        keeping former: [ListenTarget] = []
    ) throws(ListenError) -> [ListenTarget] {
        var settings = settings
        settings.sharesPort = true
        // An address with port 0 takes what the others leave.
        let order =
            addresses.indices.filter { addresses[$0].port != 0 } + addresses.indices.filter { addresses[$0].port == 0 }
        // Sockets of the same user may share a port, also if one of them listens at all addresses.
        let own = inherited.addresses + former.map(\.address)
        var former = former
        var targets: [Int: ListenTarget] = [:]
        for index in order {
            let configured = addresses[index]
            if let kept = former.firstIndex(where: { $0.configured == configured || $0.address == configured }) {
                targets[index] = ListenTarget(configured: configured, sockets: former.remove(at: kept).sockets)
                continue
            }
            var sockets = inherited.take(at: configured, for: use)
            let address = sockets.first?.address ?? configured
            let isOwn = own.contains { $0.covers(address) || address.covers($0) }
            if address.port != nil, !isOwn { try Listener.probe(address) }
            let isShared = address.port == nil || sockets.first?.isKept == true
            while sockets.count < (isShared ? 1 : count) {
                sockets.append(try ListeningSocket(sockets.first?.address ?? address, settings, listens: !isOwn))
            }
            targets[index] = ListenTarget(configured: configured, sockets: sockets)
        }
        return addresses.indices.compactMap { targets[$0] }
    }

    /// From now on all sockets of `targets` listen.
    /// - Throws: if one cannot; those before it listen all the same.
    public static func listen(_ targets: [ListenTarget]) throws(ListenError) {
        for target in targets { for socket in target.sockets { try socket.listen() } }
    }

    /// Whether both have the same sockets.
    public func isSame(as other: ListenTarget) -> Bool { sockets.first === other.sockets.first }

    /// The sockets on which the loop at `index` accepts. There are more sockets than loops if the program that handed
    /// them on had more loops.
    public func sockets(ofLoop index: Int, among count: Int) -> [ListeningSocket] {
        sockets.count < count ? sockets : stride(from: index, to: sockets.count, by: count).map { sockets[$0] }
    }
}
