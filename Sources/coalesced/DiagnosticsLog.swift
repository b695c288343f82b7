import Bytes
import Configuration
import Glibc
import Libevent
import Logging

/// The diagnostics log: one line per message on standard error, with journald's priority in front if it goes there.
///
/// The log never waits: event loops write here. What its reader does not take in time is lost, as is whatever exceeds
/// `LineOutput.longest` in a line.
struct DiagnosticsLog: LogHandler {
    /// The level of this log and all its copies: every worker has one, and a reload means them all.
    var logLevel: Logger.Level {
        get { threshold.level.withLock { $0 } }
        nonmutating set { threshold.level.withLock { $0 = newValue } }
    }

    private final class Threshold: Sendable {
        let level: Guarded<Logger.Level>
        init(_ level: Logger.Level) { self.level = Guarded(level) }
    }

    private let threshold: Threshold
    var metadata: Logger.Metadata = [:]
    private let goesToJournal: Bool

    init(level: Logger.Level) {
        threshold = Threshold(level)
        // While there is a descriptor for it: running out of them is one of the things it has to report.
        _ = Self.output
        goesToJournal = System.errorsGoToJournal
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var line = goesToJournal ? "<\(event.level.priority)>" : "\(System.timestamp()) \(event.level): "
        line += Self.inOneLine("\(event.message)")
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        for (key, value) in all.sorted(by: { $0.key < $1.key }) { line += " \(key)=\(Self.inOneLine("\(value)"))" }
        Self.write(line)
    }

    /// `nil`: standard error is closed.
    private static let output = try? LineOutput(to: STDERR_FILENO)

    private static func write(_ line: String) { output?.write(line + "\n") }

    /// What came from outside must not look like a line of ours.
    private static func inOneLine(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else { return text }
        return text.unicodeScalars.reduce(into: "") { line, scalar in
            line += scalar.value < 0x20 || scalar.value == 0x7F ? scalar.escaped(asASCII: true) : String(scalar)
        }
    }

    /// A line that is part of the outward contract and has no level, such as `listening on …`.
    static func announce(_ line: String) {
        write((System.errorsGoToJournal ? "<\(Logger.Level.info.priority)>" : "") + line)
    }
}

extension Logger.Level {
    /// The severity in syslog (RFC 5424 §6.2.1), which sd-daemon(3) adopts.
    var priority: Int {
        switch self {
        case .critical: 2
        case .error: 3
        case .warning: 4
        case .notice: 5
        case .info: 6
        case .debug, .trace: 7
        }
    }

    init(_ level: LogLevel) {
        switch level {
        case .debug: self = .debug
        case .info: self = .info
        case .notice: self = .notice
        case .warning: self = .warning
        case .error: self = .error
        case .critical: self = .critical
        }
    }
}
