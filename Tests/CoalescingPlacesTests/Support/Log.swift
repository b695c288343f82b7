import Synchronization

/// What happened, in order.
final class Log<Entry: Sendable>: Sendable {
    private let kept = Mutex<[Entry]>([])

    var entries: [Entry] { kept.withLock { $0 } }

    func append(_ entry: Entry) { kept.withLock { $0.append(entry) } }
}
