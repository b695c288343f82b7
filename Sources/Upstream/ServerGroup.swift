import Bytes
package import Libevent
import Synchronization

/// The places of an origin, which decides which of them get requests. Owned by its `Origin`, shared by all loops.
///
/// The list is behind a lock. Each loop has a copy of it (`ServerChoice`), and compares `generation` before it chooses.
/// Answers are noted in the places without a lock; a threshold that is reached takes the lock of the list, since how many
/// places are away decides whether one more may be ejected.
package final class ServerGroup: Sendable {
    /// One place, with the weight and the role of its server in the settings.
    package struct Entry: Sendable {
        /// The place, whose health stays when the list changes.
        package let place: Place
        /// The number of the server in the settings.
        package let server: Int
        let weight: Int
        /// Whether the place is asked only while none of the others can be used.
        package let isBackup: Bool
        /// The place's part of a rendezvous (`Balance.hash`); the same on each machine.
        let hash: UInt64
    }

    private struct List: Sendable {
        var entries: [Entry] = []
        /// The addresses of each server's name, in the order of their turns; empty for a server without a name, and
        /// before the first look-up.
        var addresses: [[SocketAddress]]
        var drains = Drains()
    }

    /// When a place is ejected by its failures among its answers, not only by failures in a row: a server that fails
    /// every third request never has many in a row.
    private enum FailureRate {
        /// Fewer answers of ten seconds tell nothing.
        static let leastAnswers = 20
        /// The least share of failures.
        static let leastPercent = 25
        /// The least ratio of the place's rate to that of the others: a fault that all places share, such as a lost
        /// database, is not the fault of one.
        static let timesOthers = 3
    }

    /// The settings of the origin.
    package let settings: UpstreamSettings
    /// The TLS to its servers; `nil` if none of them speaks TLS.
    package let tls: OriginTLS?
    /// Shared by all requests to the origin.
    package let budget: RetryBudget
    /// Counts on for an origin that a reload changes.
    package let events: ServerEventCounts
    private let list: Guarded<List>
    private let changes = Atomic<UInt64>(1)
    /// The time of the last early probe, and the number of them.
    private let earlyProbe = Atomic<Int64>(.min)
    private let earlyTurn = Atomic<Int>(0)
    /// The most early probes in `PlaceHealth.earlyInterval`.
    private static let mostEarlyTurns = 10
    private let checksAreOver = Atomic<Bool>(false)
    private let cooldown: Int64

    /// Reads and compares certificates, if a server speaks TLS: not on a loop of requests.
    /// - Parameter former: the group of the same origin under former settings: places that are in both stay as they
    ///   are. Places with TLS do so only if its settings are the same, since these decide about every failure there.
    package init(_ settings: UpstreamSettings, after former: ServerGroup? = nil) {
        self.settings = settings
        tls = OriginTLS(settings)
        cooldown = settings.failureCooldown.nanoseconds
        budget = RetryBudget(percent: settings.retry.budget)
        events = former?.events ?? ServerEventCounts()
        var list = List(addresses: settings.servers.map { _ in [] })
        var places: [PlaceID: Place] = [:]
        if let former {
            let (old, oldSettings) = (former.list.withLock { $0 }, former.settings)
            let tlsIsSame = oldSettings.tls == settings.tls
            places = Self.byID(old.entries.filter { tlsIsSame || !$0.place.server.isSecure })
            list.drains = old.drains.kept(for: settings.servers)
            for (index, server) in settings.servers.enumerated() {
                let known = oldSettings.servers.firstIndex { $0.location == server.location }
                if let known { list.addresses[index] = old.addresses[known] }
            }
        }
        list.entries = Self.entries(settings, list, places)
        self.list = Guarded(list)
    }

    // MARK: The list

    /// Changes whenever the list, or whether a place is drained, does.
    package var generation: UInt64 { changes.load(ordering: .acquiring) }

    /// In the order of the servers in the settings, and of the addresses of each.
    package var entries: [Entry] { list.withLock { $0.entries } }

    /// A look-up of a server's name gave these addresses; none: nobody knows one any more. Addresses that stay keep
    /// their health and their turns.
    package func change(addressesOf server: Int, to found: [SocketAddress]) {
        let isChanged = list.withLock { list -> Bool in
            let old = list.addresses[server]
            let (before, now) = (Set(old), Set(found))
            guard before != now else { return false }
            list.addresses[server] = SocketAddress.familiesInTurn(
                old.filter(now.contains) + found.filter { !before.contains($0) })
            list.entries = Self.entries(settings, list, Self.byID(list.entries))
            return true
        }
        if isChanged { changes.add(1, ordering: .releasing) }
    }

    private struct PlaceID: Hashable {
        let location: UpstreamServer.Location
        let isSecure: Bool
        let addresses: [SocketAddress]

        init(_ server: UpstreamServer, _ addresses: [SocketAddress]) {
            (location, isSecure) = (server.location, server.isSecure)
            self.addresses = addresses
        }
    }

    private static func byID(_ entries: [Entry]) -> [PlaceID: Place] {
        Dictionary(
            entries.map { (PlaceID($0.place.server, $0.place.addresses), $0.place) }
        ) { first, _ in first }
    }

    private static func entries(_ settings: UpstreamSettings, _ list: List, _ former: [PlaceID: Place]) -> [Entry] {
        var entries: [Entry] = []
        for (index, server) in settings.servers.enumerated() {
            let places = places(of: server, list.addresses[index])
            for addresses in places {
                let id = PlaceID(server, addresses)
                // One address of a name may change: its server keeps its share of the keys.
                let name = places.count == 1 ? "\(server)" : "\(server) \(addresses)"
                let place =
                    former[id]
                    ?? Place(server, addresses, isDrained: list.drains.include(server, addresses))
                entries.append(
                    Entry(
                        place: place, server: index, weight: server.weight, isBackup: server.isBackup,
                        hash: Rendezvous.hash(name.utf8)))
            }
        }
        return entries
    }

    /// The addresses of each place of a server.
    private static func places(of server: UpstreamServer, _ found: [SocketAddress]) -> [[SocketAddress]] {
        if let address = server.address { return [[address]] }
        // The two loopback addresses, which a machine has for itself, are two ways to one server.
        if found.isEmpty || (found.count == 2 && found.allSatisfy(\.isOwnLoopback)) { return [found] }
        return found.map { [$0] }
    }

    // MARK: Answers

    /// Notes a response that is no failure.
    /// - Parameter probe: when the request was chosen as the place's probe; `nil`: it was not.
    /// - Returns: news, if the place is back.
    package func answered(_ place: Place, isOnly: Bool, probe: Int64?, at now: Int64) -> PlaceNews? {
        place.noteAnswer(isCounted: !isOnly, at: now)
        guard isOnly || probe != nil, !place.isInUse else { return nil }
        return isBack(place, at: now)
    }

    @inline(never)
    private func isBack(_ place: Place, at now: Int64) -> PlaceNews? {
        guard let time = place.change(at: now, { $0.returned(at: now) }) else { return nil }
        list.withLock { list in
            let others = list.entries.filter { $0.place !== place }
            // The origin was down as a whole: the others may be back as well.
            if others.allSatisfy({ !$0.place.isInUse }) {
                for other in others { other.place.change(at: now) { $0.endEjection(at: now) } }
            }
        }
        return news(of: place, .isBack(after: time))
    }

    /// Notes a failure to connect or to answer, or a response with a status of `retry.on`.
    /// - Parameters:
    ///   - isCertain: whether one such failure is as good as `max-failures`.
    ///   - probe: as of `answered`.
    ///   - least: the least length of an ejection in nanoseconds (`Retry-After`).
    /// - Returns: news, if the place is ejected now and was not before.
    package func failed(
        _ place: Place, _ cause: FailureCause, isOnly: Bool, isCertain: Bool = false, probe: Int64? = nil,
        least: Int64 = 0, at now: Int64
    ) -> PlaceNews? {
        let inARow = place.noteFailure(isCounted: !isOnly, at: now)
        if let probe {
            place.change(at: now) {
                $0.probeFailed(since: probe, because: cause, least: least, cooldown: cooldown, at: now)
            }
            return nil
        }
        guard place.isInUse else { return nil }
        let reaches = inARow >= settings.maxFailures || isCertain
        guard reaches || (!isOnly && hasHighRate(place, at: now)) else { return nil }
        let ejected: Int64? = list.withLock { list in
            guard reaches || isWorse(place, among: list.entries, at: now) else { return nil }
            if !isOnly, !cause.isConnection {
                // Of those that could answer at most half are away: the other half must bear the load.
                let answering = list.entries.filter { $0.place.presentHealth.mayAnswer }
                let away = answering.count { !$0.place.isInUse }
                guard (away + 1) * 2 <= answering.count else { return nil }
            }
            return place.change(at: now) { $0.eject(because: cause, least: least, cooldown: cooldown, at: now) }
        }
        if ejected != nil { events.add(.ejection) }
        return ejected.map {
            let counts = inARow >= settings.maxFailures
            return news(of: place, .isEjected(duration: $0, cause, inARow: counts ? inARow : nil, isOnly: isOnly))
        }
    }

    private func hasHighRate(_ place: Place, at now: Int64) -> Bool {
        let (answers, failures) = place.recentAnswers(at: now)
        return answers >= FailureRate.leastAnswers && failures * 100 >= answers * FailureRate.leastPercent
    }

    /// Whether a place with a high rate of failures has a much higher one than the others together.
    private func isWorse(_ place: Place, among entries: [Entry], at now: Int64) -> Bool {
        let own = place.recentAnswers(at: now)
        var others = (answers: 0, failures: 0)
        for entry in entries where entry.place !== place {
            let (answers, failures) = entry.place.recentAnswers(at: now)
            others.answers += answers
            others.failures += failures
        }
        guard others.answers >= FailureRate.leastAnswers else { return false }
        return own.failures * others.answers >= FailureRate.timesOthers * others.failures * own.answers
    }

    /// The probe that began at `probe` ended with neither a response nor a failure.
    package func undecided(_ place: Place, probe: Int64, at now: Int64) {
        place.change(at: now) { $0.probeUndecided(since: probe, cooldown: cooldown, at: now) }
    }

    /// Chooses a request, or a copy of one, as the probe of a place whose ejection is over. A copy stays the only probe
    /// as long as it may last.
    func claimProbe(_ place: Place, isSafe: Bool, isCopy: Bool = false, at now: Int64) -> Bool {
        let alone = isCopy ? settings.connectTimeout.nanoseconds + settings.firstByteTimeout.nanoseconds : 0
        return place.change(at: now) { $0.claimProbe(isSafe: isSafe, alone: alone, cooldown: cooldown, at: now) }
    }

    /// How many early probes were tried.
    var earlyProbes: Int { earlyTurn.load(ordering: .relaxed) }

    /// Chooses a request as an early probe, since no place is left: each of `count` places gets one at a time and seldom
    /// (`PlaceHealth.earlyInterval`).
    func claimEarlyProbe(_ place: Place, of count: Int, isSafe: Bool, at now: Int64) -> Bool {
        let last = earlyProbe.load(ordering: .relaxed)
        let interval = PlaceHealth.earlyInterval / Int64(max(1, min(count, Self.mostEarlyTurns)))
        guard last == .min || now - last >= interval else { return false }
        guard earlyProbe.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged else {
            return false
        }
        earlyTurn.add(1, ordering: .relaxed)
        if place.change(at: now, { $0.claimEarlyProbe(isSafe: isSafe, cooldown: cooldown, at: now) }) { return true }
        earlyProbe.store(last, ordering: .relaxed)
        return false
    }

    // MARK: Checks and the operator

    /// Notes the outcome of an active check. The origin must have checks in its settings.
    /// - Returns: news, if the place is down now, or back, and was not before.
    package func checked(_ place: Place, _ outcome: CheckOutcome, at now: Int64) -> PlaceNews? {
        guard let health = settings.health else { return nil }
        events.add(outcome.isSuccess ? .checkSuccess : .checkFailure)
        switch place.change(at: now, { $0.checked(outcome, health, at: now) }) {
        case nil: return nil
        case .down: return news(of: place, .isDown(place.presentHealth.cause ?? .check("")))
        case .back(let time): return news(of: place, .isBack(after: time))
        }
    }

    /// Called when no check follows, as after a reload: the outcomes of the last checks do not count any more.
    package func forgetChecks(at now: Int64) {
        for entry in entries { entry.place.change(at: now) { $0.forgetChecks(at: now) } }
    }

    /// Called when no check follows since this program drains: what the last checks found counts until no place is in
    /// use any more.
    package func endChecks(at now: Int64) {
        checksAreOver.store(true, ordering: .relaxed)
        _ = forgetEndedChecks(at: now)
    }

    /// Forgets the outcomes of checks that have ended, if no place is in use.
    /// - Returns: whether a place was down.
    func forgetEndedChecks(at now: Int64) -> Bool {
        guard checksAreOver.load(ordering: .relaxed) else { return false }
        let places = entries.map(\.place)
        guard !places.contains(where: \.isInUse), places.contains(where: \.presentHealth.isDown) else { return false }
        forgetChecks(at: now)
        return true
    }

    /// Lets a server, or an address, have no new requests, or have requests again. Places that are not known yet are
    /// concerned as well; requests in flight go on. A server that has requests again has them at all of its addresses.
    /// - Returns: whether this changes anything.
    package func drain(_ target: DrainTarget, _ isDrained: Bool, at now: Int64) -> Bool {
        let isChanged = list.withLock { list -> Bool in
            if isDrained {
                list.drains.add(target, of: settings.servers)
            } else {
                list.drains.remove(target, of: list.entries.map(\.place))
            }
            var isChanged = false
            for entry in list.entries where target.includes(entry.place) {
                if entry.place.change(at: now, { $0.setDrained(isDrained, at: now) }) { isChanged = true }
            }
            return isChanged
        }
        if isChanged { changes.add(1, ordering: .releasing) }
        return isChanged
    }

    /// The state of each place, in the order of `entries`.
    package func states(at now: Int64) -> [PlaceState] {
        let growing = settings.slowStart.nanoseconds
        return entries.map { entry in
            let health = entry.place.presentHealth
            let back = entry.place.backAt
            let nextProbe: Int64? =
                switch health.phase {
                case .up: nil
                case .ejected(let until), .probing(_, let until, _): until
                }
            return PlaceState(
                place: entry.place, server: entry.server, weight: entry.weight, isBackup: entry.isBackup,
                condition: health.condition(isGrowing: back != .min && now - back < growing),
                changedAt: health.changedAt, cause: health.cause, nextProbe: nextProbe, lastCheck: health.lastCheck)
        }
    }

    private func news(of place: Place, _ event: PlaceNews.Event) -> PlaceNews {
        let hasOthers = list.withLock { list in
            list.entries.contains { $0.place !== place && $0.place.server.location == place.server.location }
        }
        return PlaceNews(
            server: place.server, address: hasOthers ? place.addresses.first : nil, event: event)
    }
}

extension SocketAddress {
    /// 127.0.0.1 or ::1.
    fileprivate var isOwnLoopback: Bool {
        switch self {
        case .ipv4(let address, _): address == .loopback
        case .ipv6(let address, _, _): address == .loopback
        case .unix: false
        }
    }
}
