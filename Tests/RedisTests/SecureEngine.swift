import Bytes
import CertificateMaking
import Glibc
import Libevent
import LoopTesting
import TLS

@testable import Redis

/// Real engines that speak TLS on one port of this machine each, and nothing else but their Unix socket.
final class SecureEngine {
    let authority: TestAuthority
    let server: RedisServer
    /// The port with TLS, and those that were asked for.
    let ports: [UInt16]
    private let files: [String]

    var address: RedisAddress { RedisAddress(.tcp(host: "127.0.0.1", port: ports[0]), isSecure: true) }

    /// - Parameters:
    ///   - names: of its certificate.
    ///   - others: further ports that are free.
    ///   - arguments: more of them, for that port and the others.
    init(
        _ authority: TestAuthority = TestAuthority(), for names: String..., others: Int = 0,
        _ arguments: ([UInt16]) -> [String] = { _ in [] }
    ) throws {
        let identity = authority.identity(for: names.first ?? "127.0.0.1", names.last ?? "localhost")
        let prefix = "/tmp/redis-tls-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        files = ["crt", "key", "ca"].map { "\(prefix).\($0)" }
        self.authority = authority
        for (file, content) in zip(files, [identity.certificate, identity.key, authority.file].map(\.content)) {
            try Self.write(content, to: file)
        }
        var attempts = 1
        while true {
            let ports = try freePorts(1 + others)
            do {
                server = try RedisServer(
                    words: [
                        "--port", "0", "--tls-port", "\(ports[0])", "--bind", "127.0.0.1", "--tls-cert-file", files[0],
                        "--tls-key-file", files[1], "--tls-ca-cert-file", files[2], "--tls-auth-clients", "no",
                    ] + arguments(ports))
                self.ports = ports
                return
            } catch {
                // The kernel may give a free port to another test before the engine binds it.
                guard attempts < 5 else { throw error }
                attempts += 1
            }
        }
    }

    private static func write(_ content: ByteSlice, to path: String) throws {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        defer { close(file) }
        let bytes = Array(String(content).utf8)
        guard file >= 0, unsafe Glibc.write(file, bytes, bytes.count) == bytes.count else {
            throw RedisServer.NotThere(description: "\(path): \(errno)")
        }
    }

    deinit { for file in files { _ = unsafe unlink(file) } }

    /// What clients need that believe its authority.
    func peers(_ change: (inout TLSPeerSettings) -> Void = { _ in }) -> TLSPeers {
        var settings = TLSPeerSettings()
        settings.authorities = authority.file
        change(&settings)
        return TLSPeers(settings)
    }
}
