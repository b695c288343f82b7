import Bytes
import Coalescing
import Libevent
import Redis
import Routing
import SharedTier
import TLS
import Upstream

/// One loop's way to the engine of the shared tier. Owned by its `LoopContext`, confined to its loop.
///
/// Whoever reads a key with the engine's help is told when it changes, once: the engine pushes the names of keys that
/// were read over this connection.
final class TierEngine {
    let settings: SharedTierSettings
    let seal: TierSeal?
    let loop: EventLoop
    private let prefix: ByteSlice
    private var tokens = TierTokens()
    private var cluster: RedisCluster?
    /// The look-ups in progress, by the numbers of the fetches that wait for them.
    let lookUps = OperationQueueManager<UInt64>()
    /// Those who wait for a change of a key, by its name.
    private var watchers: [ByteSlice: [ObjectIdentifier: () -> Void]] = [:]
    /// The latest `Vary` of resources, by their names in the engine, as far as this loop has heard.
    private var varies: [ByteSlice: ByteSlice] = [:]
    private static let mostVaries = 10_000
    /// The length of a lease in milliseconds.
    let leaseMilliseconds: Int
    /// Where other machines reach this one, as `HOST:PORT`; `nil`: nowhere, or there is no secret by which they know one
    /// another.
    let advertised: ByteSlice?
    /// Called when a connection is lost.
    var onLost: () -> Void = {}

    /// Leases that are to be given up, until when.
    private var owed: [(lead: TierLead, end: Int64)] = []
    private static let mostOwed = 1000
    private var leadsFrom: Int64 = .min
    /// In nanoseconds.
    private static let afterRefusal: Int64 = 1_000_000_000
    private var writers = 0
    private var onNoWriter: (() -> Void)?
    /// How long a reply may take for which no client waits, in nanoseconds.
    static let patience: Int64 = 2_000_000_000
    private let state: SharedTierState
    /// How long the engine took for what a client waits for.
    private let replyTimes: TierReplyTimes

    init(_ settings: SharedTierSettings, _ state: SharedTierState, on loop: EventLoop) {
        self.state = state
        replyTimes = state.counts.replyTimesOfLoop()
        self.settings = settings
        self.loop = loop
        prefix = ByteSlice(settings.prefix)
        leaseMilliseconds = Int(settings.lease.nanoseconds / 1_000_000)
        advertised = settings.secret == nil ? nil : settings.advertised.map { ByteSlice($0.hostAndPort) }
        seal = settings.secret.map { TierSeal(secret: $0.span) }
        var redis = RedisSettings()
        redis.timeout = settings.timeout.nanoseconds
        cluster = RedisCluster(
            settings.engines.map(RedisAddress.init), redis,
            library: RedisLibrary(
                name: ByteSlice(TierFunctions.library), code: ByteSlice(TierFunctions.text)),
            tls: state.peers(of: settings).map(TLSConnector.init), on: loop, resolver: Resolver(on: loop),
            onPush: { [weak self] in self?.received(push: $0) },
            onEvent: { [weak self] address, event in self?.received(event, of: address) })
        cluster?.start()
    }

    /// Ends the connections. Completions that are due are called before this returns.
    func stop() {
        cluster.take()?.stop()
        watchers = [:]
    }

    /// Whether commands would be sent now.
    var isAvailable: Bool { cluster?.isAvailable == true }

    func keys(of primary: Span<UInt8>) -> TierKeys { TierKeys(prefix: prefix, primary: primary) }

    func nextToken() -> ByteSlice { tokens.next() }

    /// - Parameters:
    ///   - patience: how long the reply may take, in nanoseconds; `nil`: the time of the settings, for what a client
    ///     waits for.
    ///   - completion: called once, never inside this call, with `nil` if there is no reply, and with `.error` if the
    ///     engine refuses.
    func send(_ command: TierCommand, patience: Int64? = nil, _ completion: @escaping (TierValue?) -> Void) {
        guard let cluster else { return loop.atIterationEnd { completion(nil) } }
        let sent = patience == nil ? loop.now : nil
        cluster.send(RedisCommand(command), until: patience.map { loop.now + $0 }) { [self] reply in
            note(reply, sent: sent)
            switch reply {
            case .value(let value): completion(TierValue(value))
            case .failed(.condition(_, let words)), .failed(.error(let words)): completion(.error(words))
            case .unavailable, .late, .failed: completion(nil)
            }
        }
    }

    /// Gives up a lease. If the engine cannot be told now, it is told when it is there again, as long as others might
    /// wait for the lease to end.
    func release(_ lead: TierLead, _ completion: @escaping () -> Void = {}) {
        let end = loop.now + settings.lease.nanoseconds
        send(lead.release, patience: Self.patience) { [weak self] reply in
            completion()
            guard let self, reply == nil, loop.now < end, owed.count < Self.mostOwed else { return }
            owed.append((lead, end))
        }
    }

    /// The engine has refused what this machine would write, as a full one does.
    func noteRefusal() { leadsFrom = loop.now + Self.afterRefusal }

    /// Whether this machine writes to the engine: for a while after a refusal it only reads.
    var mayLead: Bool { loop.now >= leadsFrom }

    private func releaseOwed() {
        let due = owed
        owed = []
        for (lead, end) in due where loop.now < end { release(lead) }
    }

    // MARK: Draining

    /// A fetch of this loop begins to write for other machines.
    func writerBegan() { writers += 1 }

    /// The engine has all that the fetch wrote, or takes no more of it.
    func writerEnded() {
        writers -= 1
        if writers == 0 { onNoWriter.take()?() }
    }

    /// Calls `completion` once no fetch of this loop writes for other machines, perhaps at once.
    func whenNobodyWrites(_ completion: @escaping () -> Void) {
        if writers == 0 { completion() } else { onNoWriter = completion }
    }

    /// - Parameter sent: when the command was sent, if a client waits for the reply.
    private func note(_ reply: RedisReply, sent: Int64?) {
        switch reply {
        case .unavailable: return
        case .failed(.condition(_, let words)), .failed(.error(let words)): state.nodes.noteRefusal(words, at: loop.now)
        case .value, .late, .failed: break
        }
        if let sent { replyTimes.add(nanoseconds: UInt64(max(0, loop.now - sent))) }
    }

    // MARK: Vary

    /// The latest `Vary` of a resource that this loop has heard of.
    func vary(of keys: TierKeys) -> ByteSlice { varies[keys.resource] ?? .empty }

    func note(vary: ByteSlice, of keys: TierKeys) {
        if varies.count >= Self.mostVaries { varies.removeAll(keepingCapacity: true) }
        varies[keys.resource] = vary.isEmpty ? nil : vary
    }

    // MARK: Changes of keys

    /// Has `changed` called whenever one of the keys changes, or may have changed, until `unwatch`.
    func watch(_ keys: [ByteSlice], for watcher: AnyObject, _ changed: @escaping () -> Void) {
        for key in keys { watchers[key, default: [:]][ObjectIdentifier(watcher)] = changed }
    }

    func unwatch(_ keys: [ByteSlice], for watcher: AnyObject) {
        for key in keys {
            watchers[key]?[ObjectIdentifier(watcher)] = nil
            if watchers[key]?.isEmpty == true { watchers[key] = nil }
        }
    }

    private func received(push message: [RESPValue]) {
        guard message.count == 2, message[0].text == ByteSlice("invalidate") else { return }
        guard let keys = message[1].elements else { return tellAll() }
        for key in keys {
            guard let name = key.text, let told = watchers[name] else { continue }
            for changed in told.values { changed() }
        }
    }

    private func received(_ event: RedisClient.Event, of address: RedisAddress) {
        state.nodes.note(event, of: address, owner: ObjectIdentifier(self), at: loop.now)
        switch event {
        // The engine does not tell of keys that were read over the former connection.
        case .ready:
            releaseOwed()
            tellAll()
        case .lost, .dropped(wasReady: true):
            onLost()
            tellAll()
        case .breakerClosed: releaseOwed()
        case .notConnected, .breakerOpened, .dropped: break
        }
    }

    private func tellAll() { for told in Array(watchers.values) { for changed in told.values { changed() } } }
}

extension RedisAddress {
    init(_ location: RedisLocation) {
        let place: Location =
            switch location.place {
            case .tcp(let host, let port): .tcp(host: host, port: port)
            case .unix(let path): .unix(path: path)
            }
        self.init(
            place, user: location.login?.user, password: location.login?.password, database: location.database,
            isSecure: location.isSecure)
    }
}

extension RedisCommand {
    fileprivate convenience init(_ command: TierCommand) {
        let arguments = command.arguments
        guard case .word(let name)? = arguments.first else { preconditionFailure("a command has a name") }
        self.init(name.text)
        for argument in arguments.dropFirst() {
            switch argument {
            case .word(let word): add(word.text)
            case .bytes(let bytes): add(bytes)
            case .number(let number): add(number)
            case .key(let key): add(key: key)
            }
        }
    }
}

extension TierValue {
    fileprivate init(_ value: RESPValue) {
        switch value {
        case .null: self = .none
        case .integer(let number): self = .integer(number)
        case .boolean(let flag): self = .integer(flag ? 1 : 0)
        case .simple(let text), .bulk(let text), .verbatim(let text), .double(let text), .bigNumber(let text):
            self = .text(text)
        case .error(let text): self = .error(text)
        case .array(let values), .set(let values), .map(let values), .push(let values):
            self = .list(values.map(TierValue.init))
        }
    }
}
