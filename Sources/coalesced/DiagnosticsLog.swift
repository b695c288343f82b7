import Bytes
import Configuration
import Glibc
import Libevent
import Logging

/// The diagnostics log: one line per message on standard error, with a priority in front if the line goes to journald.
///
/// The log never waits, since event loops write to it. A line that the reader of standard error does not take in time
/// is lost. So is the part of a line beyond `LineOutput.longest`.
struct DiagnosticsLog: LogHandler {
    /// The level of this log and all its copies. Every worker has a copy, and a reload changes the level of all.
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
        // Opened now, while there is a free descriptor: the log must be able to report a lack of descriptors.
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

    /// `nil` if standard error is closed.
    private static let output = try? LineOutput(to: STDERR_FILENO)

    private static func write(_ line: String) { output?.write(line + "\n") }

    /// Escapes control characters, so that text from outside cannot look like a line of this program.
    private static func inOneLine(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else { return text }
        return text.unicodeScalars.reduce(into: "") { line, scalar in
            line += scalar.value < 0x20 || scalar.value == 0x7F ? scalar.escaped(asASCII: true) : String(scalar)
        }
    }

    /// Writes a line without a level that other programs rely on, such as `listening on …`.
    static func announce(_ line: String) {
        write((System.errorsGoToJournal ? "<\(Logger.Level.info.priority)>" : "") + line)
    }
}

extension Logger.Level {
    /// The syslog severity (RFC 5424 §6.2.1), which sd-daemon(3) uses.
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
