public import Libevent

/// Where the admin listener is and who may use it.
public struct AdminSettings: Sendable, Equatable {
    /// Purges in one request. One walk through the store serves all that name prefixes.
    public static let maxPurges = 100
    /// Bytes of a request's content.
    public static let maxContent = 64 << 10

    /// `nil`: no admin listener. By default for this machine only: whoever reaches it may purge, if `allowsPurging`.
    public var address: SocketAddress? = .ipv4(.loopback, port: 8081)
    /// Permissions of a Unix socket: its owner and group.
    public var socketMode: UInt32 = 0o660
    /// Whether what is stored may be purged there.
    public var allowsPurging = true

    public init() {}
}
