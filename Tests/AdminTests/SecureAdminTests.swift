import Bytes
import CertificateMaking
import Libevent
import Logging
import LoopTesting
import Proxy
import Routing
import Storage
import TLS
import Telemetry
import Testing
import Upstream

@testable import Admin

/// The admin listener with TLS.
@Suite(.timeLimit(.minutes(10))) final class SecureAdminTests {
    private let authority = TestAuthority()
    private let (loop, control): (EventLoop, EventLoop)
    private let server: AdminServer

    init() throws {
        let (loop, control) = (try EventLoop(), try EventLoop())
        (self.loop, self.control) = (loop, control)
        let upstream = UpstreamSettings(name: "one", servers: [UpstreamServer(host: "127.0.0.1")])
        let proxy = ProxyServer(
            ProxySettings(), upstreams: [upstream], storage: StorageSettings(), accessLog: AccessLogSettings(),
            on: control, log: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        server = try AdminServer(
            at: .ipv4(.loopback, port: 0), Self.settings, Self.tls(authority, "one.test"), from: InheritedSockets(),
            of: proxy, version: "0", on: loop, onRefusal: { _ in }, onConnectionLimit: {})
        server.resume()
        loop.schedule(every: millisecond) { [unowned loop] in loop.stop() }
    }

    deinit {
        server.close()
        loop.finish()
        control.finish()
    }

    private static var settings: AdminSettings {
        var settings = AdminSettings()
        settings.isSecure = true
        return settings
    }

    private static func tls(_ authority: TestAuthority, _ name: String) -> TLSSettings {
        var tls = TLSSettings()
        tls.identities = [authority.identity(for: name)]
        return tls
    }

    /// A client and what came of it.
    private final class Client {
        let socket: TestSocket
        private var handshake: TLSStream?
        private(set) var received = ""
        private(set) var failure: TLSFailure?
        private(set) var hasEnded = false
        private(set) var stream: TLSStream?

        /// - Parameters:
        ///   - tls: `nil`: in the clear.
        ///   - request: sent when the connection is ready.
        init(
            to address: SocketAddress, _ tls: (client: TLSClient, name: String)?, on loop: EventLoop, request: String
        ) throws {
            socket = try TestSocket(connectingTo: address, on: loop)
            let bytes = ByteSlice(request)
            let input = ByteBuffer(capacity: 4096)
            func shake(_ socket: TestSocket) {
                guard let stream = handshake else { return }
                do throws(TLSFailure) {
                    guard try socket.goOn(with: stream) else { return }
                    handshake = nil
                    socket.startReading()
                    _ = socket.write(bytes.span)
                } catch {
                    failure = error
                    socket.close()
                }
            }
            socket.onConnected = { [unowned self, unowned socket] _ in
                if let tls {
                    stream = tls.client.connect(
                        onDescriptor: socket.descriptorNumber, to: tls.name, sessions: SessionSlot())
                    handshake = stream
                    if let stream { socket.secure(with: stream) }
                    return shake(socket)
                }
                socket.startReading()
                _ = socket.write(bytes.span)
            }
            socket.onWritable = { [unowned self] in handshake == nil ? $0.disarmWrite() : shake($0) }
            socket.onReadable = { [unowned self] socket in
                if handshake != nil { return shake(socket) }
                guard case .bytes = socket.read(into: input) else {
                    hasEnded = true
                    return socket.close()
                }
                received += String(input.copied())
                input.removeAll()
            }
        }

        var isDone: Bool { hasEnded || failure != nil }
    }

    private static let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    private func ask(_ name: String?, _ request: String = request) throws -> Client {
        let tls = try name.map { (try TLSClient(TLSClientSettings(authorities: try authority.authorities)), $0) }
        let client = try Client(to: server.address, tls, on: loop, request: request)
        while !client.isDone { loop.run() }
        return client
    }

    @Test func `pages pass through TLS, and the stream ends in its way`() throws {
        let client = try ask("one.test")
        #expect(client.received.hasPrefix("HTTP/1.1 200 OK\r\n") && client.received.hasSuffix("ok\n"))
        #expect(client.failure == nil && client.stream.map { "\($0.version)" } == "TLSv1.3")
        #expect(loop.deadlines.count == 0)
    }

    @Test func `new certificates count from the next handshake on`() throws {
        #expect(try ask("two.test").failure?.kind == .certificate)
        server.apply(Self.settings, Self.tls(authority, "two.test"))
        #expect(try ask("two.test").received.hasPrefix("HTTP/1.1 200 "))
        #expect(try ask("one.test").failure?.kind == .certificate)
        // Damaged ones do not.
        var damaged = Self.tls(authority, "one.test")
        damaged.identities[0].key.content = ByteSlice("no key")
        server.apply(Self.settings, damaged)
        #expect(try ask("two.test").received.hasPrefix("HTTP/1.1 200 "))
    }

    @Test func `a request in the clear is told to come with TLS`() throws {
        let client = try ask(nil)
        #expect(client.received.hasPrefix("HTTP/1.1 400 ") && client.received.contains("https://"))
        let purge = try ask(nil, "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nall")
        #expect(purge.received.hasPrefix("HTTP/1.1 400 "))
    }

    @Test func `a page of this listener is known by its scheme`() throws {
        let post = { (scheme: String) in
            "POST /purge HTTP/1.1\r\nHost: localhost\r\nOrigin: \(scheme)://localhost\r\nContent-Length: 0\r\n\r\n"
        }
        #expect(try ask("one.test", post("http")).received.hasPrefix("HTTP/1.1 403 "))
        #expect(try ask("one.test", post("https")).received.hasPrefix("HTTP/1.1 400 "))
    }

    @Test func `other bytes end the connection, and silent ones give way`() throws {
        let junk = try ask(nil, "\u{16}\u{3}\u{1}\u{0}\u{5}hello")
        #expect(!junk.received.contains("HTTP"))
        let silent = try (0..<AdminServer.maxConnections).map { _ in
            try Client(to: server.address, nil, on: loop, request: "")
        }
        #expect(try ask("one.test").received.hasPrefix("HTTP/1.1 200 "))
        #expect(silent.contains { $0.hasEnded })
        for client in silent { client.socket.close() }
    }
}
