import Bytes
package import Libevent
package import TLS

/// The engine as one loop sees it: a single server, or the nodes of a cluster, with one client for each. Each command
/// goes to the node that has its first key.
///
/// Which node has which keys is asked by `CLUSTER SLOTS`: when a connection is ready, when one is lost, and when a node
/// answers that another has the key (`MOVED`). A single server says that it is no cluster, and is not asked again. The
/// servers that the operator names are only needed until a node of the cluster is ready, and again when none is.
///
/// Confined to its loop. The owner calls `stop` before it drops the object.
package final class RedisCluster {
    private let seeds: [RedisAddress]
    /// Of each seed, in their order. Made once, since every command to a single server looks there.
    private let seedNames: [ByteSlice]
    private let settings: RedisSettings
    private let library: RedisLibrary?
    private let tls: TLSConnector?
    private let loop: EventLoop
    private let resolver: Resolver
    private let onPush: ([RESPValue]) -> Void
    private let onEvent: (RedisAddress, RedisClient.Event) -> Void

    /// By the names of the nodes, and of the servers that the operator names.
    private var clients: [ByteSlice: RedisClient] = [:]
    private var table = SlotTable()
    /// Whether a node has told of all slots. Before that, the table has the slots of which redirections told.
    private var isTold = false
    /// Whether a server has said that it is no cluster.
    private var isSingle = false
    /// Whether a `CLUSTER SLOTS` is on its way.
    private var isAsking = false
    /// When a redirection may lead to the next `CLUSTER SLOTS`, in nanoseconds of the loop's clock.
    private var nextAsking = Int64.min
    private var isStopped = false

    /// How often a command is sent on to another node.
    private static let mostRedirections = 3
    /// The least time between two `CLUSTER SLOTS` because of redirections, in nanoseconds.
    private static let leastBetween: Int64 = 100_000_000

    /// A cluster that does nothing before `start`.
    /// - Parameters:
    ///   - seeds: the server, or some nodes of the cluster; at least one. The login of the first is that of all nodes, and so is
    ///     whether they speak TLS.
    ///   - library: the functions that the commands call; `nil`: none.
    ///   - tls: one of `loop`; needed if the seeds are secure.
    ///   - resolver: one of `loop`.
    ///   - onPush: called for each push message with its values, the kind first.
    ///   - onEvent: called for each event of a node. After `lost` and `dropped`, no push message tells of the keys that
    ///     were read there.
    package init(
        _ seeds: [RedisAddress], _ settings: RedisSettings = RedisSettings(), library: RedisLibrary? = nil,
        tls: TLSConnector? = nil, on loop: EventLoop, resolver: Resolver,
        onPush: @escaping ([RESPValue]) -> Void = { _ in },
        onEvent: @escaping (RedisAddress, RedisClient.Event) -> Void = { _, _ in }
    ) {
        precondition(!seeds.isEmpty, "a cluster of no servers")
        self.seeds = seeds
        seedNames = seeds.map { Self.name(of: $0) }
        self.settings = settings
        self.library = library
        self.tls = tls
        self.loop = loop
        self.resolver = resolver
        self.onPush = onPush
        self.onEvent = onEvent
    }

    // MARK: Life

    /// Begins to connect. On the loop's thread.
    package func start() { startSeeds() }

    /// Ends all connections for good. The completions of commands without a reply are called before this returns. On
    /// the loop's thread; a second call does nothing.
    package func stop() {
        isStopped = true
        let former = clients.values
        clients = [:]
        for client in former { client.stop() }
    }

    /// The state of each server that is connected to, for `status`. On the loop's thread.
    package var conditions: [(address: RedisAddress, condition: RedisClient.Condition)] {
        clients.values.map { ($0.address, $0.condition) }
    }

    private func startSeeds() {
        for (name, seed) in zip(seedNames, seeds) { _ = client(named: name, at: seed) }
    }

    private static func name(of address: RedisAddress) -> ByteSlice {
        switch address.location {
        case .tcp(let host, let port): ByteSlice("\(host):\(port)")
        case .unix(let path): ByteSlice(path)
        }
    }

    /// The client of a node, which is made if there is none.
    private func client(named name: ByteSlice, at address: RedisAddress) -> RedisClient {
        if let client = clients[name] { return client }
        let made = RedisClient(
            address, settings, library: library, tls: tls, on: loop, resolver: resolver,
            onPush: { [weak self] in self?.onPush($0) },
            onEvent: { [weak self] in self?.happened($0, to: name) })
        clients[name] = made
        made.start()
        return made
    }

    /// - Parameter name: address and port, as a node writes them.
    /// - Returns: `nil` if the name is none, or there are too many nodes.
    private func client(named name: ByteSlice) -> RedisClient? {
        if let client = clients[name] { return client }
        let text = String(name)
        guard clients.count < SlotTable.mostNodes + seeds.count, let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...]), port > 0
        else { return nil }
        let host = String(text[..<colon])
        guard !host.isEmpty else { return nil }
        var address = seeds[0]
        address.database = 0
        address.location = .tcp(host: host, port: port)
        return client(named: name, at: address)
    }

    private func happened(_ event: RedisClient.Event, to name: ByteSlice) {
        guard !isStopped, let client = clients[name] else { return }
        onEvent(client.address, event)
        guard !isStopped else { return }
        switch event {
        case .ready:
            dropOthers()
            ask(client)
        case .lost, .notConnected:
            if let other = readyClient { ask(other) } else { startSeeds() }
        case .breakerOpened, .breakerClosed, .dropped: break
        }
    }

    /// The name of a node. A node that does not know its own address leaves it out: it is that of `sender`.
    private static func fullName(of node: ByteSlice, toldBy sender: RedisClient) -> ByteSlice {
        guard node.span.hasPrefix(":"), case .tcp(let host, _) = sender.address.location else { return node }
        return ByteSlice(host + String(node))
    }

    // MARK: Slots

    private var readyClient: RedisClient? { clients.values.first { $0.isAvailable } }

    /// Asks a node which node has which slots.
    private func ask(_ client: RedisClient) {
        guard !isAsking, !isSingle, !isStopped else { return }
        isAsking = true
        nextAsking = loop.now + Self.leastBetween
        let command = RedisCommand("CLUSTER")
        command.add("SLOTS")
        client.send(command) { [weak self, weak client] reply in
            guard let self else { return }
            isAsking = false
            guard let client, !isStopped else { return }
            if case .value(let answer) = reply { take(answer, from: client) }
            if case .failed(.error(let text)) = reply, text.span.hasPrefix("ERR This instance has cluster") {
                isSingle = true
            }
        }
    }

    private func take(_ answer: RESPValue, from client: RedisClient) {
        let host: ByteSlice = if case .tcp(let host, _) = client.address.location { ByteSlice(host) } else { .empty }
        guard let new = SlotTable(answer, from: host) else { return }
        (table, isTold) = (new, true)
        for name in table.nodes { _ = self.client(named: name) }
        dropOthers()
    }

    /// Stops the clients of servers that the table does not name, once one that it names is ready.
    private func dropOthers() {
        let nodes = Set(table.nodes)
        guard isTold, clients.contains(where: { nodes.contains($0.key) && $0.value.isAvailable }) else { return }
        for (name, client) in clients where !nodes.contains(name) {
            let wasReady = client.condition == .ready || client.condition == .breakerOpen
            clients[name] = nil
            client.stop()
            // Its pushes come no more.
            onEvent(client.address, .dropped(wasReady: wasReady))
        }
    }

    // MARK: Commands

    /// Whether commands can be sent to a node at least. On the loop's thread.
    package var isAvailable: Bool { readyClient != nil }

    /// Sends `command` to the node that has its first key, and on to another if that says so. On the loop's thread.
    /// - Parameters:
    ///   - deadline: when the reply is late, in nanoseconds of the loop's clock; `nil`: after the timeout of the
    ///     settings.
    ///   - completion: called exactly once, never inside this call; inside `stop`, if that comes first.
    package func send(
        _ command: RedisCommand, until deadline: Int64? = nil, _ completion: @escaping (RedisReply) -> Void
    ) {
        guard let client = client(for: command) else {
            loop.atIterationEnd { completion(.unavailable(.notConnected)) }
            return
        }
        send(command, to: client, until: deadline ?? loop.now + settings.timeout, Self.mostRedirections, completion)
    }

    private func client(for command: RedisCommand) -> RedisClient? {
        if let slot = command.slot, let name = table[slot] { return clients[name] }
        // A server that does not have the key says which does.
        for name in seedNames {
            if let client = clients[name], client.isAvailable { return client }
        }
        return readyClient
    }

    private func send(
        _ command: RedisCommand, to client: RedisClient, until deadline: Int64, _ redirections: Int,
        _ completion: @escaping (RedisReply) -> Void
    ) {
        // Each completion is called once, so nothing is held for long. Weak references would make each later use of the
        // objects slow.
        client.send(command, until: deadline) { [self] reply in
            guard case .failed(.redirected(let redirection)) = reply, redirections > 0, !isStopped else {
                return completion(reply)
            }
            let name = Self.fullName(of: redirection.node, toldBy: client)
            guard let other = self.client(named: name) else { return completion(reply) }
            guard loop.now < deadline else { return completion(.late) }
            if redirection.isOnce {
                // The node takes a command for a slot that is on its way to it only behind this one.
                other.send(RedisCommand("ASKING"), until: deadline) { _ in }
            } else {
                table.move(redirection.slot, to: name)
                if loop.now >= nextAsking { ask(client) }
            }
            send(command, to: other, until: deadline, redirections - 1, completion)
        }
    }
}
