package import Coalescing
package import Libevent

/// The checks of all places of an origin, for all loops. Places come and go with the addresses of their names; a name
/// that no request has looked up yet is looked up for its check.
///
/// Each check is a plain operation of immediate priority on the origin's queue: it waits for no fetch, takes no slot from
/// one, and is seen there. The outcome goes to the `ServerGroup`, which all loops share. Drained places and backups are
/// checked like the others.
///
/// Owned by the server, confined to its control loop: a stuck worker does not stop the checks.
///
/// ```
/// new ─start→ running ─stop→ stopped
/// a check: enqueued ─begun, an address is known→ asking ─judged→ ended
///             └─begun, none is known→ looking up ─none is found→ ended (failed)
/// any ─the place has left, as when addresses are found for it; stop→ ended (no outcome)
/// ```
package final class HealthChecks {
    /// A check under way.
    private struct UnderWay {
        let operation: PlainOperation
        /// `nil` until an address is known.
        var check: Check?
    }

    private let group: ServerGroup
    private let health: HealthSettings
    /// `nil` if no server speaks TLS.
    private let tls: LoopTLS?
    private let loop: EventLoop
    private let resolver: Resolver
    private let names: NameResolution
    private let enqueue: (PlainOperation) -> Void
    private let onNews: (PlaceNews, CheckFailure?) -> Void
    private var schedule: CheckSchedule
    /// The places of the group, as of `generation`, by their numbers.
    private var entries: [Int: ServerGroup.Entry] = [:]
    private var generation: UInt64?
    private var underWay: [Int: UnderWay] = [:]
    private var timer: Timer?
    private var isRunning = false
    private var random = SystemRandomNumberGenerator()

    /// - Parameters: `health` is that of the group's settings. `resolver` is one of `loop`; `names` is shared by all
    ///   loops. `enqueue` puts an operation into the origin's queue. `onNews` is called for each place that is down or
    ///   back because of its checks, with the failure of the last check; `nil`: it succeeded.
    package init(
        _ health: HealthSettings, of group: ServerGroup, on loop: EventLoop, resolver: Resolver, names: NameResolution,
        enqueue: @escaping (PlainOperation) -> Void, onNews: @escaping (PlaceNews, CheckFailure?) -> Void
    ) {
        self.health = health
        tls = group.tls.map { LoopTLS($0, group.settings) }
        self.group = group
        self.loop = loop
        self.resolver = resolver
        self.names = names
        self.enqueue = enqueue
        self.onNews = onNews
        schedule = CheckSchedule(interval: health.interval.nanoseconds)
    }

    /// Begins with the first checks.
    package func start() {
        isRunning = true
        beginDue()
    }

    /// Ends the checks under way, and begins no more. A second call does nothing.
    package func stop() {
        isRunning = false
        timer?.cancel()
        for place in underWay.keys { drop(place) }
    }

    private func beginDue() {
        followGroup()
        for place in schedule.begin(at: loop.now, using: &random) {
            let bound = LoopBound(self, on: loop)
            let operation = PlainOperation { operation in
                bound.handle.post { bound.value.begin(place, operation) }
            }
            underWay[place] = UnderWay(operation: operation)
            enqueue(operation)
        }
        setTimer()
    }

    private func setTimer() {
        timer?.cancel()
        guard let next = schedule.next else { return }
        timer = loop.schedule(after: max(0, next - loop.now)) { [weak self] in self?.beginDue() }
    }

    /// Takes over the places of the group, if they have changed.
    private func followGroup() {
        let present = group.generation
        guard present != generation else { return }
        generation = present
        let list = group.entries
        entries = Dictionary(list.map { ($0.place.number, $0) }) { first, _ in first }
        schedule.change(to: list.map(\.place.number), at: loop.now)
        for place in underWay.keys where entries[place] == nil { drop(place) }
    }

    private func drop(_ place: Int) {
        guard let left = underWay.removeValue(forKey: place) else { return }
        left.check?.stop()
        left.operation.finish()
    }

    // MARK: One check

    private func begin(_ place: Int, _ operation: PlainOperation) {
        guard underWay[place]?.operation === operation, let entry = entries[place] else { return }
        let server = entry.place.server
        guard server.address == nil else { return ask(entry) }
        let longest = group.settings.resolveTTL.nanoseconds
        names.addresses(of: server, longest: longest, on: resolver) { [weak self] result in
            self?.found(result, for: entry)
        }
        // A known address is checked meanwhile: a slow name server says nothing of it. It may have left already.
        if !entry.place.addresses.isEmpty, underWay[place]?.operation === operation { ask(entry) }
    }

    private func found(_ result: Result<[SocketAddress], UpstreamError>, for entry: ServerGroup.Entry) {
        guard isRunning else { return }
        // A failure means that no address of the name is known any more, not even a former one.
        group.change(addressesOf: entry.server, to: (try? result.get()) ?? [])
        followGroup()
        setTimer()
        guard entry.place.addresses.isEmpty, underWay[entry.place.number] != nil else { return }
        if case .failure(let error) = result { judged(entry, .failed(.noAddress(error.detail))) }
    }

    private func ask(_ entry: ServerGroup.Entry) {
        let place = entry.place
        let check = Check(
            of: place.server, at: place.addresses, health, group.settings, tls?.server(place.server), on: loop
        ) { [weak self] in self?.judged(entry, $0) }
        underWay[place.number]?.check = check
        check.start()
    }

    private func judged(_ entry: ServerGroup.Entry, _ end: CheckEnd) {
        let place = entry.place
        underWay.removeValue(forKey: place.number)?.operation.finish()
        schedule.ended(place.number)
        setTimer()
        let (outcome, failure): (CheckOutcome, CheckFailure?)
        switch end {
        case .success: (outcome, failure) = (.success, nil)
        case .failed(let why): (outcome, failure) = (.failure(why.word), why)
        case .undecided: return
        }
        if let news = group.checked(place, outcome, at: loop.now) { onNews(news, failure) }
    }
}
