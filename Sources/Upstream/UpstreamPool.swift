package import Bytes
import HTTPSemantics
package import Libevent
package import Telemetry

/// One loop's connections to one origin. The pool chooses the place of each request and keeps the idle connections.
///
/// Confined to its loop. A request that cannot be sent twice takes no connection that may be closing (`ServerPatience`).
/// A connection to a place that left the list, as one of an address that a name no longer has, is not used again.
package final class UpstreamPool {
    /// The interval, in nanoseconds, at which names are looked up again while connections are used. Addresses that are
    /// still fresh are not looked up.
    private static let lookInterval = NameTimes.shortest

    /// The place of a request.
    enum Pick {
        /// `probe`: when the request was chosen as the place's probe; `nil`: it was not.
        case place(PlaceConnections, probe: Int64?)
        /// No place is left. `next`: when the first may be back, in nanoseconds of the loop's clock; `nil`: unknown.
        case none(next: Int64?)
    }

    /// The settings of the origin.
    package let settings: UpstreamSettings
    /// The loop of the pool.
    package let loop: EventLoop
    /// The metrics of the loop, which count the pool's connections.
    package let metrics: LoopMetrics
    /// The metrics of the origin on the loop, which count the pool's exchanges.
    let upstreamMetrics: UpstreamMetrics
    /// Connections that have received a response's head, or a part of one.
    private let batch: SocketBatch
    private let buffers: BufferStock
    private let isMemoryShort: () -> Bool
    let deadlines: DeadlineWheel
    let timeouts: UpstreamTimeouts
    private let names: NameResolution
    private let resolver: Resolver
    /// The places, which all loops share.
    private let group: ServerGroup
    /// `nil` if no server speaks TLS.
    private let tls: LoopTLS?
    private let choice: Exclusive<ServerChoice>
    private var random = LoopRandom()
    /// The connections to each place, in the order of the list.
    private(set) var places: [PlaceConnections] {
        didSet { lone = places.count == 1 ? places[0] : nil }
    }
    /// The only place, if there is only one.
    private var lone: PlaceConnections?
    private let onNews: (PlaceNews) -> Void
    private let onConnection: (SocketAddress, ConnectionNews) -> Void
    private var idleCount = 0
    /// When the names are looked up again, in nanoseconds of the loop's clock.
    private var nextNameLookup = Int64.max
    /// Whether requests in flight are counted for each place.
    let countsRequests: Bool
    /// Whether a request needs its key, since the place is chosen by it.
    package let choosesByKey: Bool
    /// Whether the pool was retired: it keeps no connection any more, and connections in use are closed after their
    /// exchange.
    private(set) var isRetired = false

    /// - Parameters: `group` is the origin's; `resolver`, `buffers` and `metrics` are the loop's; `names` is shared by
    ///   all loops. While `isMemoryShort` is true, responses are read in small pieces, since they may have to wait.
    ///   `firstServer` is asked first (`ServerChoice`). `onNews` is called on the loop, and so is `onConnection` for
    ///   each connection that is opened or closed.
    package init(
        _ group: ServerGroup, on loop: EventLoop, resolver: Resolver, names: NameResolution,
        buffers: BufferStock, isMemoryShort: @escaping () -> Bool = { false }, metrics: LoopMetrics,
        firstServer: Int = 0,
        onNews: @escaping (PlaceNews) -> Void,
        onConnection: @escaping (SocketAddress, ConnectionNews) -> Void = { _, _ in }
    ) {
        let settings = group.settings
        self.settings = settings
        self.group = group
        let tls = group.tls.map { LoopTLS($0, settings) }
        self.tls = tls
        self.loop = loop
        self.resolver = resolver
        self.names = names
        self.buffers = buffers
        batch = SocketBatch(on: loop)
        self.isMemoryShort = isMemoryShort
        self.metrics = metrics
        upstreamMetrics = metrics.upstream(settings.name)
        self.onNews = onNews
        self.onConnection = onConnection
        deadlines = loop.deadlines
        timeouts = UpstreamTimeouts(settings)
        countsRequests = settings.balance == .leastRequests
        choosesByKey = settings.balance == .hash
        let choice = ServerChoice(group, startingAt: firstServer)
        let places = choice.entries.map { Self.connections(to: $0, settings, tls) }
        self.places = places
        lone = places.count == 1 ? places[0] : nil
        self.choice = Exclusive(choice)
    }

    private static func connections(to entry: ServerGroup.Entry, _ settings: UpstreamSettings, _ tls: LoopTLS?)
        -> PlaceConnections
    {
        let server = settings.servers[entry.server]
        return PlaceConnections(
            entry.place, server: entry.server, isNamed: server.address == nil, tls: tls?.server(server))
    }

    /// Closes every idle connection and ends the probes, and keeps none any more. Called when the pool is no longer used.
    package func retire() {
        isRetired = true
        for one in places { one.endUnawaited() }
    }

    // Methods, not properties: an object that is reached through two others is retained at each use.

    /// An empty buffer to read into.
    @inline(never)
    func lendBuffer() -> ByteBuffer {
        isMemoryShort() ? ByteBuffer(capacity: UpstreamConnection.smallestRead) : buffers.lend()
    }
    @inline(never)
    func takeBack(_ buffer: ByteBuffer) { buffers.takeBack(buffer) }

    @inline(never)
    func countIn(_ bytes: Int) { metrics.add(.upstreamBytesIn, UInt64(bytes)) }
    @inline(never)
    func countOut(_ bytes: Int) { metrics.add(.upstreamBytesOut, UInt64(bytes)) }

    /// Counts an exchange that begins on a connection.
    @inline(never)
    func countExchange(isReused: Bool) {
        upstreamMetrics.add(.fetches)
        if isReused { metrics.add(.upstreamReuses) }
    }

    /// The connection handles the head that it has read in a batch with the heads of others.
    @inline(never)
    func handleLater(_ connection: UpstreamConnection) { batch.add(connection) }

    /// - Parameter duration: how long connecting took, in nanoseconds.
    func opened(_ connection: UpstreamConnection, after duration: UInt64) {
        metrics.add(.upstreamConnects)
        upstreamMetrics.add(.connect, duration)
        connection.home.open += 1
        onConnection(connection.address, .opened(after: duration))
    }

    func closed(_ connection: UpstreamConnection, _ why: ConnectionEnd, exchanges: Int) {
        metrics.add(.upstreamCloses)
        connection.home.open -= 1
        onConnection(connection.address, .closed(why, exchanges: exchanges))
    }

    func countResponse(_ status: StatusClass) { upstreamMetrics.add(.responses(status)) }

    /// - Parameter duration: the nanoseconds since the request had been sent.
    @inline(never)
    func countFinalResponse(_ status: StatusClass, after duration: UInt64) {
        upstreamMetrics.add(.responses(status))
        upstreamMetrics.add(.firstByte, duration)
    }

    /// Takes an idle connection to a place that the request may use, if there is one.
    /// - Parameter mayRepeat: whether the request is sent again if the connection is dead.
    func takeIdle(at place: PlaceConnections, mayRepeat: Bool) -> UpstreamConnection? {
        guard idleCount > 0 else { return nil }
        let now = loop.now
        if now >= nextNameLookup { refreshNames() }
        let connection = place.takeIdle(mayRepeat: mayRepeat, at: now)
        if connection != nil { idleCount -= 1 }
        return connection
    }

    /// The same for the only place of the origin, unless it is down or drained; `nil` if there are several.
    @inline(never)
    func takeIdleOfLone(mayRepeat: Bool) -> UpstreamConnection? {
        update()
        guard let lone, lone.place.awayUntil != PlaceHealth.withoutEnd else { return nil }
        return takeIdle(at: lone, mayRepeat: mayRepeat)
    }

    /// Keeps a connection for the next exchange, if there is room and its place is still in use.
    @inline(never)
    func keep(idle connection: UpstreamConnection) -> Bool {
        guard !isRetired, idleCount < settings.maxIdleConnections, connection.home.keepsIdle else { return false }
        connection.home.keep(connection)
        idleCount += 1
        return true
    }

    func forget(idle connection: UpstreamConnection) {
        if connection.home.forget(connection) { idleCount -= 1 }
    }

    // MARK: Places

    /// The place to ask. A copy of the request may go to another place, as its probe.
    /// - Parameters:
    ///   - tried: the numbers of the places that the same request asked in vain.
    ///   - isRetry: whether another place has answered, so that this one must be known to be in use.
    ///   - preferred: the place to ask if it is in use.
    @inline(never)
    func pick(
        for request: borrowing UpstreamRequest, besides tried: [Int], isRetry: Bool, key: UInt64,
        preferring preferred: Place?
    ) -> Pick {
        update()
        if let preferred, preferred.isInUse, !tried.contains(preferred.number),
            let index = places.firstIndex(where: { $0.place === preferred })
        {
            return .place(places[index], probe: nil)
        }
        let now = loop.now
        let asked = ServerChoice.Asked(
            isSafe: request.method.isSafe, mayProbe: !isRetry, mayBeCopied: request.mayBeCopied && !isRetired, key: key,
            tried: tried)
        var random = random
        let pick = choice.use { $0.pick(asked, at: now, random: &random) }
        self.random = random
        switch pick {
        case .place(let index, let probe):
            let place = places[index]
            if probe == nil, let probed = choice.use({ $0.placeToProbe(besides: index, asked, at: now) }) {
                self.probe(places[probed], with: request, claimedAt: now)
            }
            return .place(place, probe: probe)
        case .none(let next):
            guard group.forgetEndedChecks(at: now) else { return .none(next: next) }
            return self.pick(for: request, besides: tried, isRetry: isRetry, key: key, preferring: nil)
        }
    }

    @inline(never)
    private func probe(_ place: PlaceConnections, with request: borrowing UpstreamRequest, claimedAt now: Int64) {
        place.probe?.stop()
        let probe = Probe(of: place, in: self, copying: request)
        place.probe = probe
        probe.start(claimedAt: now)
    }

    /// Whether the origin has only one place, which gets all requests however often it fails.
    var isLone: Bool { lone != nil }

    /// Whether another address of the same server is a place.
    func hasOthers(besides place: PlaceConnections) -> Bool {
        place.isNamed && places.contains { $0 !== place && $0.server == place.server }
    }

    /// The addresses that a request to a place may be sent to, in the order in which to try them: first the place's own,
    /// then, unless it is a probe, the addresses of the server's other places that are in use.
    func candidates(from place: PlaceConnections, besides tried: [Int], isProbe: Bool) -> [AddressRace.Candidate] {
        var candidates = place.place.addresses.map { AddressRace.Candidate(home: place, address: $0) }
        guard !isProbe, place.isNamed, places.count > 1, let first = places.firstIndex(where: { $0 === place }) else {
            return candidates
        }
        for step in 1..<places.count {
            let other = places[(first + step) % places.count]
            guard other.server == place.server, other.place.isInUse, !tried.contains(other.place.number) else {
                continue
            }
            candidates += other.place.addresses.map { AddressRace.Candidate(home: other, address: $0) }
        }
        return candidates
    }

    /// Takes the present list of places. A request does so before it chooses; a loop without requests must be told to,
    /// or keeps its idle connections to a drained server until they are old.
    package func update() {
        if choice.use({ $0.update() }) { changePlaces() }
    }

    @inline(never)
    private func changePlaces() {
        var former = Dictionary(places.map { ($0.place.number, $0) }) { first, _ in first }
        places = choice.use { $0.entries }.map { entry in
            let known = former.removeValue(forKey: entry.place.number)
            guard let known, known.server == entry.server else { return Self.connections(to: entry, settings, tls) }
            return known
        }
        for one in former.values { (one.isListed, one.keepsIdle) = (false, false) }
        for one in places { one.keepsIdle = !one.place.presentHealth.isDrained }
        for one in Array(former.values) + places where !one.keepsIdle { one.endUnawaited() }
    }

    /// Notes a response that is no failure.
    /// - Parameter probe: as of `Pick.place`.
    func answered(_ place: PlaceConnections, probe: Int64?) {
        if let news = group.answered(place.place, isOnly: isLone, probe: probe, at: loop.now) { onNews(news) }
    }

    /// - Parameters:
    ///   - isCertain: whether one such failure is as good as `max-failures`.
    ///   - isTold: whether it is reported.
    ///   - least: the least length of an ejection in nanoseconds (`Retry-After`).
    func failed(
        _ place: PlaceConnections, _ cause: FailureCause, isCertain: Bool = false, isTold: Bool = true, probe: Int64?,
        least: Int64 = 0
    ) {
        let news = group.failed(
            place.place, cause, isOnly: isLone, isCertain: isCertain, probe: probe, least: least, at: loop.now)
        if let news, isTold { onNews(news) }
    }

    /// Notes that the probe that began at `probe` ended without a verdict.
    func undecided(_ place: PlaceConnections, probe: Int64) {
        group.undecided(place.place, probe: probe, at: loop.now)
    }

    // MARK: Retries

    /// Counts a request for the budget of retries.
    func countRequest() { group.budget.countRequest(at: loop.now) }

    /// Takes a retry out of the budget, unless it needs none, if there is another place to ask.
    /// - Parameter tried: as of `pick`.
    func takeRetry(besides tried: [Int], needsBudget: Bool) -> Bool {
        guard choice.use({ $0.hasUsable(besides: tried) }) else { return false }
        guard needsBudget, !group.budget.take(at: loop.now) else { return true }
        group.events.add(.refusedRetry)
        return false
    }

    /// Whether a response with this status counts as a failure.
    func isFailure(_ status: UInt16) -> Bool { settings.retry.statuses.contains(status) }

    /// The error of a request for which no place is left; counts it.
    /// - Parameters:
    ///   - next: as of `Pick.none`.
    ///   - last: the last failure to connect.
    func noPlace(until next: Int64?, after last: String?) -> UpstreamError {
        group.events.add(.noServer)
        let last = last.map { ", the last one: \($0)" } ?? ""
        var error = UpstreamError(.unavailable, .noServer, detail: "no server takes requests\(last)")
        let time = next.map { $0 - loop.now } ?? settings.health?.interval.nanoseconds ?? 0
        error.retryAfter = UInt64(min(max(1, (time + 999_999_999) / 1_000_000_000), Self.longestRetryAfter))
        return error
    }

    /// The longest `Retry-After`, in seconds.
    private static let longestRetryAfter: Int64 = 300

    // MARK: For operators

    /// The connections of one loop to one place.
    package struct ConnectionCount: Sendable {
        /// The place.
        package let place: Place
        /// Connections that carry a request or a tunnel, or belong to a client connection.
        package let inUse: Int
        /// Connections kept for the next request.
        package let idle: Int
    }

    /// This loop's connections to each place.
    package var connections: [ConnectionCount] {
        places.map { ConnectionCount(place: $0.place, inUse: $0.open - $0.idle, idle: $0.idle) }
    }

    // MARK: Names

    /// The addresses of a server with a name: remembered, looked up, or taken from a look-up in flight. They are places
    /// by then.
    func resolve(server: Int, _ completion: @escaping (Result<[SocketAddress], UpstreamError>) -> Void) {
        // `self` is not captured weakly, since that would make every reference to the pool slow. A look-up holds the
        // pool no longer than the look-up takes.
        names.addresses(of: settings.servers[server], longest: settings.resolveTTL.nanoseconds, on: resolver) {
            [self] result in
            // A failure means that no address of the name is known any more, not even a former one.
            learn((try? result.get()) ?? [], of: server)
            completion(result)
        }
    }

    /// Looks up again, beside the requests, the names that have addresses: a busy connection would otherwise stay at an
    /// address that its name lost long ago. The requests use the known addresses until an answer comes, if one does.
    package func refreshNames() {
        guard nextNameLookup != .max else { return }
        nextNameLookup = loop.now + Self.lookInterval
        for server in Set(places.filter { $0.isNamed && !$0.place.addresses.isEmpty }.map(\.server)) {
            resolve(server: server) { _ in }
        }
    }

    private func learn(_ found: [SocketAddress], of server: Int) {
        update()
        let known = places.filter { $0.server == server }.flatMap(\.place.addresses)
        if known.count != found.count || Set(known) != Set(found) {
            group.change(addressesOf: server, to: found)
            update()
        }
        if nextNameLookup == .max { nextNameLookup = loop.now + Self.lookInterval }
    }
}
