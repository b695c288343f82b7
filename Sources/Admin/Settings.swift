package import Bytes
import HTTPSemantics
package import Libevent
package import Routing

/// The address of the admin listener, and the rules for its clients.
package struct AdminSettings: Sendable, Equatable {
    /// The maximum number of purges in one request. One walk through the store serves all prefixes.
    package static let maxPurges = 100
    /// The maximum number of bytes of a tag.
    package static let longestTag = TagFields.longestTag
    /// The maximum number of bytes of a request's content.
    package static let maxContent = 64 << 10

    /// `nil`: no admin listener. The default is for this machine only: every client that reaches the listener may
    /// purge, if `allowsPurging`.
    package var address: SocketAddress? = .ipv4(.loopback, port: 8081)
    /// Whether clients speak TLS, with the certificates of the listeners for clients; never at a Unix socket.
    package var isSecure = false
    /// Permissions of a Unix socket: its owner and group.
    package var socketMode: UInt32 = 0o660
    /// Names, besides addresses and `localhost`, under which requests ask for the listener, in lower case. If there are
    /// any, or the listener is reached from this machine only, other names are refused.
    package var hosts: [HostPattern] = []
    /// The file with the token that requests must have; `nil`: none is asked for.
    package var tokenFile: NamedFile?
    /// Whether stored responses may be purged through the listener.
    package var allowsPurging = true

    package init() {}
}
