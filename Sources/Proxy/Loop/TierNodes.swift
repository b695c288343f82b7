import Bytes
import Logging
import Redis
import Telemetry

/// The servers of the engine as the connections of all loops find them, and the messages to the operator about them. Any
/// thread.
///
/// A server has a connection of each worker, and one for the purges. One message is written when the first of them is
/// lost or finds no server, and one when the last of them is back; likewise for their breakers. Each kind is written five
/// times in ten seconds at most.
final class TierNodes: Sendable {
    /// One loop's connection to a server.
    private struct Connection: Sendable {
        var isReady = false
        /// Whether it was lost, or could not be made, and is not back.
        var isMissing = false
        var isBreakerOpen = false
    }

    private enum Message: Hashable, Sendable { case missing, back, open, closed, refusal }

    private struct State: Sendable {
        /// By the engine's address alone.
        var nodes: [RedisAddress: [ObjectIdentifier: Connection]] = [:]
        /// Why a connection was missing the last time.
        var reasons: [RedisAddress: String] = [:]
        var limit = RateLimitedNotice<Message>(
            limit: TierNodes.mostInInterval, interval: UInt64(TierNodes.interval))
    }

    private static let mostInInterval = 5
    /// In nanoseconds.
    private static let interval: Int64 = 10_000_000_000

    private let log: Logger
    private let state = Guarded(State())

    init(log: Logger) { self.log = log }

    /// - Parameters:
    ///   - owner: the loop's engine, of which each has one connection to a server.
    ///   - now: nanoseconds of the loop's clock.
    func note(_ event: RedisClient.Event, of address: RedisAddress, owner: ObjectIdentifier, at now: Int64) {
        let node = address.engine
        let name = "\(node)"
        let text: (level: Logger.Level, text: String)? = state.withLock { state in
            let before = Self.condition(state.nodes[node]?.values)
            var connection = state.nodes[node]?[owner] ?? Connection()
            switch event {
            case .ready: (connection.isReady, connection.isMissing) = (true, false)
            case .notConnected(let why), .lost(let why):
                (connection.isReady, connection.isMissing) = (false, true)
                state.reasons[node] = String("\(why)".prefix(200))
            case .breakerOpened: connection.isBreakerOpen = true
            case .breakerClosed: connection.isBreakerOpen = false
            case .dropped:
                state.nodes[node]?[owner] = nil
                if state.nodes[node]?.isEmpty == true { (state.nodes[node], state.reasons[node]) = (nil, nil) }
                return nil
            }
            state.nodes[node, default: [:]][owner] = connection
            let after = Self.condition(state.nodes[node]?.values)
            let found: (message: Message, level: Logger.Level, text: String)
            if after.isMissing != before.isMissing {
                found =
                    after.isMissing
                    ? (
                        .missing, .warning,
                        "no connection to \(name): \(state.reasons[node] ?? "-"); this machine goes on without it until it is back"
                    ) : (.back, .notice, "connected to \(name) again")
            } else if after.isOpen != before.isOpen {
                found =
                    after.isOpen
                    ? (
                        .open, .warning,
                        "\(name) does not answer in time; it is not asked until it answers a probe (breaker open)"
                    ) : (.closed, .notice, "\(name) answers again (breaker closed)")
            } else {
                return nil
            }
            guard let more = Self.admit(found.message, &state.limit, at: now) else { return nil }
            return (found.level, "shared tier: \(found.text)\(more)")
        }
        if let text { log.log(level: text.level, "\(text.text)") }
    }

    /// The engine has refused a command in these words.
    func noteRefusal(_ words: ByteSlice, at now: Int64) {
        let more: String?? = state.withLock { Self.admit(.refusal, &$0.limit, at: now) }
        guard case .some(.some(let more)) = more else { return }
        log.warning("shared tier: the engine refuses: \(String(words[0..<min(words.count, 200)]))\(more)")
    }

    /// What follows the message, or `nil` if it is not to be written.
    private static func admit(
        _ message: Message, _ limit: inout RateLimitedNotice<Message>, at now: Int64
    ) -> String? {
        switch limit.admit(message, at: UInt64(now)) {
        case .suppress: nil
        case .write(let suppressed): suppressed > 0 ? " (\(suppressed) similar messages suppressed)" : ""
        }
    }

    private static func condition(_ connections: (some Collection<Connection>)?) -> (isMissing: Bool, isOpen: Bool) {
        guard let connections else { return (false, false) }
        return (connections.contains { $0.isMissing }, connections.contains { $0.isBreakerOpen })
    }

    /// The servers in the order of their names.
    var snapshot: [TierNode] {
        state.withLock { state in
            state.nodes.map { node, connections in
                let (isMissing, isOpen) = Self.condition(connections.values)
                return TierNode(
                    name: "\(node)", connections: connections.values.count { $0.isReady },
                    wanted: connections.count,
                    openBreakers: connections.values.count { $0.isBreakerOpen },
                    state: isMissing ? .unreachable : isOpen ? .breakerOpen : .ready,
                    reason: isMissing ? state.reasons[node] : nil)
            }
        }.sorted { $0.name < $1.name }
    }
}

/// A server of the engine at one moment.
package struct TierNode: Sendable {
    /// Whether it is asked.
    package enum State: String, Sendable {
        case ready
        /// A connection at least is missing.
        case unreachable
        /// It does not answer in time, and is not asked by all.
        case breakerOpen = "breaker-open"
    }

    /// The URL, without user, password and database.
    package let name: String
    /// The connections that are ready.
    package let connections: Int
    /// The connections that there should be.
    package let wanted: Int
    /// The connections that send nothing until a probe is answered.
    package let openBreakers: Int
    package let state: State
    /// Why a connection is missing.
    package let reason: String?
}
