import Bytes
import Configuration
import Libevent
import TLS

/// Where an admin listener is, and whether it speaks TLS.
struct AdminAddress: Sendable, CustomStringConvertible {
    let address: SocketAddress
    let isSecure: Bool

    init(_ address: SocketAddress, isSecure: Bool = false) { (self.address, self.isSecure) = (address, isSecure) }

    /// `nil` if there is no admin listener.
    init?(_ access: AdminAccess) {
        guard let address = access.address else { return nil }
        self.init(address, isSecure: access.isSecure)
    }

    /// Reads `127.0.0.1:8081`, perhaps behind `http://` or `https://`, or `unix:/path`.
    init(parsing text: String) throws(AddressSyntaxError) {
        let scheme = ["https://", "http://"].first { text.lowercased().hasPrefix($0) } ?? ""
        var rest = text.dropFirst(scheme.count)
        if !scheme.isEmpty, rest.hasSuffix("/") { rest.removeLast() }
        self.init(try SocketAddress(parsing: String(rest)), isSecure: scheme == "https://")
    }

    var description: String { "\(isSecure ? "https://" : "")\(address)" }
}

/// One way to believe the certificate of an admin listener.
struct AdminTrust {
    private let client: TLSClient
    private let name: String?
    private let sessions = SessionSlot()

    private init?(_ authorities: TLSAuthorities?, _ name: String?) {
        guard let authorities, let client = try? TLSClient(TLSClientSettings(authorities: authorities)) else {
            return nil
        }
        (self.client, self.name) = (client, name)
    }

    /// The ways to be tried one after the other.
    ///
    /// First, exactly the certificates of the proxy's file, whatever their names. These may have been renewed, and wait
    /// for the very reload that is to be asked for: so then certificates of the same issuers, or of the system's
    /// authorities, for the name in that file or for the address.
    static func all(_ certificates: [NamedFile], at address: SocketAddress) -> [AdminTrust] {
        let exact = AdminTrust(try? TLSAuthorities.exactly(certificates), nil)
        guard let system = try? TLSAuthorities.system.get() else { return [exact].compactMap(\.self) }
        let wide = (try? system.joined(withIssuersIn: certificates)) ?? system
        var names = [host(of: address)]
        if let first = certificates.first, let name = TLSIdentity.name(in: first) { names.append(name) }
        return ([exact] + names.compactMap(\.self).map { AdminTrust(wide, $0) }).compactMap(\.self)
    }

    private static func host(of address: SocketAddress) -> String? {
        if case .unix = address { nil } else { String(address.hostText) }
    }

    /// Lets the bytes of a connected socket pass through TLS; `nil` if memory is short.
    func secure(_ socket: Socket) -> TLSStream? {
        guard let stream = client.connect(onDescriptor: socket.descriptorNumber, to: name, sessions: sessions) else {
            return nil
        }
        socket.secure(with: stream)
        return stream
    }
}

extension TLSFailure {
    static var shortOfMemory: TLSFailure { TLSFailure(.shortage, "memory is short") }
}
