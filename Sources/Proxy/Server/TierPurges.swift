import Bytes
import HTTPSemantics
import Libevent
import Logging
import Routing
import SharedTier

/// The log of purges that the machines share: reads it, purges here what others have purged, and writes what was purged
/// here. Owned by the server, confined to the control loop.
///
/// ```
/// unread ─the engine is ready→ reading ─read to its end→ current ─pushed, a second over→ reading
/// any ─the connection is lost→ unread
/// ```
///
/// What was purged here counts here at once, and is written as soon as the engine takes it. A machine that has missed so
/// many purges that the log no longer has them empties its memory.
final class TierPurges {
    private let shared: SharedState
    private let engine: TierEngine
    private let log: ByteSlice
    private let purge: (PurgeRequest) -> Void
    private var isReading = false
    private var isReadAgain = false
    private var isWriting = false
    /// The purges that were written here, and not read yet.
    private var own: Set<TierPurgeID> = []
    private var timer: Libevent.Timer?

    /// How often the log is read without a push, and written again after a failure, in nanoseconds.
    private static let interval: Int64 = 1_000_000_000
    /// How often the log was read in this interval because there was more, and the most.
    private var rounds = 0
    private static let mostRounds = 200
    /// How long the log may be unread, in nanoseconds.
    private static let mostUnread: Int64 = 3_000_000_000
    /// How long a reply may take, in nanoseconds.
    private static let patience: Int64 = 5_000_000_000

    /// - Parameter purge: purges here, and nowhere else.
    init(
        _ settings: SharedTierSettings, _ shared: SharedState, on loop: EventLoop,
        purge: @escaping (PurgeRequest) -> Void
    ) {
        self.shared = shared
        self.purge = purge
        engine = TierEngine(settings, shared.tier, on: loop)
        log = TierKeys.purges(prefix: ByteSlice(settings.prefix))
        shared.tier.purgesRead = loop.now
        let bound = LoopBound(self, on: loop)
        shared.tier.open { bound.handle.post { bound.value.write() } }
        engine.onLost = { [unowned self] in self.shared.tier.history.withLock { $0.isCurrent = false } }
        engine.watch([log], for: self) { [unowned self] in read() }
        timer = loop.schedule(every: Self.interval) { [unowned self] in
            rounds = 0
            read()
            write()
        }
    }

    /// Where the engine is, without users and passwords. The settings of the start: a reload does not change them.
    var engines: [String] { engine.settings.engines.map(\.description) }

    func stop() {
        timer?.cancel()
        shared.tier.close()
        engine.stop()
    }

    // MARK: Reading

    private func read() {
        guard engine.isAvailable else { return noteUnread() }
        guard !isReading else { return isReadAgain = true }
        (isReading, isReadAgain) = (true, false)
        let cursor = shared.tier.history.withLock { $0.cursor }
        engine.send(TierPurgeNews.command(log: log, after: cursor), patience: Self.patience) { [self] reply in
            isReading = false
            guard let reply, let news = try? TierPurgeNews(reply) else { return noteUnread() }
            take(news, isFirst: cursor == nil)
        }
    }

    /// The log could not be read. What is not known may have purged anything.
    private func noteUnread() {
        guard engine.loop.now - shared.tier.purgesRead > Self.mostUnread,
            shared.tier.history.withLock({ $0.isCurrent })
        else { return }
        shared.tier.history.withLock { $0.isCurrent = false }
        shared.log.warning(
            "shared tier: the log of purges cannot be read; the tier is not used until it can (see `coalesced status`)")
    }

    /// Reads on, unless the log seems to have no end: then the next second.
    private func readOn() {
        rounds += 1
        if rounds < Self.mostRounds { read() }
    }

    private func take(_ news: TierPurgeNews, isFirst: Bool) {
        if news.isGap {
            // At the start nothing is stored: the log is read from its beginning.
            shared.tier.history.withLock { $0.begin(at: isFirst ? news.first : news.last) }
            own = []
            if !isFirst { purge(.everything) }
            return readOn()
        }
        for entry in news.purges {
            shared.tier.history.withLock { $0.note(entry.purge, entry.id) }
            if own.remove(entry.id) == nil, let request = PurgeRequest(entry.purge) { purge(request) }
        }
        if let last = news.purges.last, last.id < news.last { return readOn() }
        shared.tier.history.withLock { $0.isCurrent = true }
        write()
        shared.tier.purgesRead = engine.loop.now
        if isReadAgain { read() }
    }

    // MARK: Writing

    /// An operator has purged here.
    /// - Parameter policy: how the key of a URL is written.
    func add(_ request: PurgeRequest, using writer: KeyWriter, _ policy: (ParsedURL) -> KeyPolicy) {
        var purges: [TierPurge] = []
        if request.isOfEverything { purges.append(TierPurge(.everything, .empty, isSoft: request.isSoft)) }
        for url in request.urls {
            url.write(to: writer, policy(url))
            let key = writer.key()
            purges.append(TierPurge(.url, key.bytes[0..<key.url.count], isSoft: request.isSoft))
        }
        for url in request.prefixes {
            url.write(to: writer, KeyPolicy())
            purges.append(TierPurge(.prefix, writer.key().bytes, isSoft: request.isSoft))
        }
        for tag in request.tags { purges.append(TierPurge(.tag, tag, isSoft: request.isSoft)) }
        for purge in purges { shared.tier.add(purge) }
    }

    private func write() {
        guard !isWriting, engine.isAvailable,
            let next = shared.tier.history.withLock({ $0.isCurrent ? $0.next : nil })
        else { return }
        isWriting = true
        engine.send(next.purge.command(log: log), patience: Self.patience) { [self] reply in
            isWriting = false
            // After a failure, the next second. The purge may stand in the log twice then, which does no harm.
            guard case .text(let text)? = reply, let id = TierPurgeID(text.span) else { return }
            own.insert(id)
            shared.tier.history.withLock { $0.noteWritten(next, as: id) }
            write()
        }
    }
}

extension PurgeRequest {
    static var everything: PurgeRequest {
        var request = PurgeRequest()
        request.isOfEverything = true
        return request
    }

    /// `nil` if there is nothing of that here.
    fileprivate init?(_ purge: TierPurge) {
        self.init()
        isSoft = purge.isSoft
        switch purge.kind {
        case .everything: isOfEverything = true
        case .tag, .group:
            guard !purge.value.isEmpty else { return nil }
            tags = [purge.value]
        case .url:
            guard let url = ParsedURL(ofKey: purge.value) else { return nil }
            urls = [url]
        case .prefix:
            guard let url = ParsedURL(ofKey: purge.value) else { return nil }
            prefixes = [url]
        }
    }
}

extension ParsedURL {
    /// The URL of a key: scheme, authority and the rest, with spaces between.
    fileprivate init?(ofKey key: ByteSlice) {
        let parts = String(key).split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        self.init("\(parts[0])://\(parts[1])\(parts[2])")
    }
}
