import HTTPSemantics
import Upstream
import YAML

/// The keys of an upstream for servers that fail: checks and retries.
enum FailureKeys {
    /// For the keys below that turn something off.
    private static let off = "off"

    static let healthDoc = """
        Checks of each server, once for all workers, on connections of their own: {path: /up, interval: 5s, timeout: 2s, \
        expect: 200-399, body: "", host: "", failures: 3, successes: 2}. Only `path` is required; the others are the \
        defaults. A check succeeds if the whole response comes within `timeout` (at most `interval`; a shorter one \
        lowers the default), with a status in `expect`, and with the text `body` in the first 64 KiB of its content. \
        It is sent with `host`, else with the upstream's `host`, else with the server's own. After `failures` in a row \
        the server gets no requests, even if it is the last one; after `successes` in a row it gets them again. off: no \
        checks.
        """

    static let health: ValueSyntax<HealthSettings?> = {
        let map = ValueSyntax<HealthSettings?>.map("`health`", from: HealthSettings(path: ""), healthKeys, or: off)
        return ValueSyntax(write: map.write) { node, name, reader in
            guard let read = map.read(node, name, &reader) else { return nil }
            guard var health = read, health.timeout > health.interval else { return read }
            if let timeout = node["timeout"] {
                let text = ScalarSyntax<Duration>.patience.write
                reader.note(
                    timeout.position,
                    "`timeout` (\(text(health.timeout))) is longer than `interval` (\(text(health.interval))); lower the one, or raise the other"
                )
            }
            // The default does not make a mistake of a short interval.
            health.timeout = health.interval
            return health
        }
    }()

    private static let healthKeys: [Key<HealthSettings>] = [
        Key("path", \.path, .checkedPath, isRequired: true, "What is asked for."),
        Key("interval", \.interval, .patience, "The time between two checks."),
        Key("timeout", \.timeout, .patience, "The time for the whole response."),
        Key("expect", \.expected, .statuses, "The statuses of success."),
        Key("body", \.body, .checkedText, "A text in the content."),
        Key("host", \.host, .checkedHost, "The value of Host."),
        Key("failures", \.failures, .integer(1...1_000), "Failed checks until a server is down."),
        Key("successes", \.successes, .integer(1...1_000), "Successful checks until it is up."),
    ]

    static let retryDoc = """
        When a request is sent to another server, before any byte of a response has gone to the client. Only safe \
        requests are, and idempotent ones without content. on: error (closed before a response, or malformed), timeout \
        (first-byte-timeout, or no-progress-timeout while the request is sent), and statuses, 429 or 500 to 599, which \
        also count as failures of the server (max-failures). attempts: how often a request is sent to another server \
        (0 to 10). budget: retries of the last 10 s as a share of the requests (0% to 100%), so that they do not \
        multiply the load in an outage; 30 of them are always allowed, and the first of each request that was in \
        flight at a server when it was ejected. A server that takes no connection is passed over in any case. off: as attempts: 0.
        """

    static let retry: ValueSyntax<RetrySettings> = {
        let map = ValueSyntax<RetrySettings?>.map("`retry`", from: RetrySettings(), retryKeys, or: off)
        var none = RetrySettings()
        none.attempts = 0
        return ValueSyntax(write: { [none] in map.write($0 == none ? nil : $0) }) { [none] node, name, reader in
            map.read(node, name, &reader).map { $0 ?? none }
        }
    }()

    private static let retryKeys: [Key<RetrySettings>] = [
        Key("on", \.reasons, .list(of: .retryReason), "What causes a retry."),
        Key("attempts", \.attempts, .integer(0...10), "How often a request is sent to another server."),
        Key("budget", \.budget, .percent(0...100), "Retries as a share of the requests."),
    ]
}

/// A cause of a retry: an element of `on`.
private enum RetryReason: Sendable, Hashable {
    case error, timeout
    case status(UInt16)
}

extension RetrySettings {
    fileprivate var reasons: [RetryReason] {
        get {
            (causes.contains(.error) ? [.error] : []) + (causes.contains(.timeout) ? [.timeout] : [])
                + statuses.map { .status($0) }
        }
        set {
            (causes, statuses) = ([], [])
            for reason in newValue {
                switch reason {
                case .error: causes.insert(.error)
                case .timeout: causes.insert(.timeout)
                case .status(let status): statuses.append(status)
                }
            }
        }
    }
}

extension ScalarSyntax where Value == RetryReason {
    fileprivate static var retryReason: Self {
        ScalarSyntax(
            "`error`, `timeout` or a status", range: "429, 500 to 599", words: ["error", "timeout"],
            write: { reason in
                switch reason {
                case .error: "error"
                case .timeout: "timeout"
                case .status(let status): "\(status)"
                }
            }
        ) { text in
            switch text {
            case "error": return .value(.error)
            case "timeout": return .value(.timeout)
            case _ where isDigits(text):
                guard text.utf8.count == 3, let status = UInt16(text), status == 429 || (500...599).contains(status)
                else { return .outOfRange }
                return .value(.status(status))
            default: return .malformed
            }
        }
    }
}

extension ScalarSyntax where Value == ClosedRange<UInt16> {
    /// Statuses of final responses: `200`, `200-399`.
    fileprivate static var statuses: Self {
        ScalarSyntax(
            "a status such as `200`, or the first and the last of several such as `200-399`", range: "200 to 599",
            write: { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
        ) { text in
            let words = text.split(separator: "-", omittingEmptySubsequences: false)
            guard (1...2).contains(words.count), words.allSatisfy({ isDigits($0) }) else { return .malformed }
            let statuses = words.compactMap { word in UInt16(word).flatMap { (200...599).contains($0) ? $0 : nil } }
            guard statuses.count == words.count else { return .outOfRange }
            let (first, last) = (statuses[0], statuses[statuses.count - 1])
            return first <= last
                ? .value(first...last) : .refused("the lower status comes first; write `\(last)-\(first)`")
        }
    }
}

extension ScalarSyntax where Value == String {
    /// The target of a check: a path, with a query if there is one.
    fileprivate static var checkedPath: Self {
        ScalarSyntax("a path such as `/up` or `/up?full=1`, percent-encoded", write: { $0 }) { text in
            text.hasPrefix("/") && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && !text.contains("#")
                ? .value(text) : .malformed
        }
    }

    /// A text to look for, or nothing. Nobody needs more to recognise a page.
    fileprivate static var checkedText: Self {
        let most = 1 << 10
        return ScalarSyntax("a text of at most \(most) bytes", write: { $0 }) { text in
            text.utf8.count <= most ? .value(text) : .outOfRange
        }
    }

    /// The value of `Host`, or nothing.
    fileprivate static var checkedHost: Self {
        let authority = ScalarSyntax.authority
        return ScalarSyntax(authority.form, write: { $0 }) { $0.isEmpty ? .value("") : authority.parse($0) }
    }
}
