/// Where the access log goes and how it is written.
public struct AccessLogSettings: Sendable, Equatable {
    /// Off: on a busy proxy a log that nobody asked for costs more than the hits it tells of.
    public var target = AccessLogTarget.off
    public var format = LogFormat.combined
    /// The longest a finished request waits to be written: one can still watch the log live.
    public var flushWait: Duration = .seconds(1)
    /// Bytes of records that may wait on one loop; what does not fit is dropped and counted.
    public var batchCapacity = LogSettings.batchCapacity

    public init() {}

    /// Where it goes, for messages.
    public var path: String {
        switch target {
        case .off: "off"
        case .standardOutput: "stdout"
        case .file(let path): path
        }
    }
}

/// Where the access log goes.
public enum AccessLogTarget: Sendable, Hashable {
    case off
    case standardOutput
    /// Appended to, and opened again on `SIGHUP`.
    case file(path: String)
}
