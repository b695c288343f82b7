import Bytes
import COpenSSL
import CertificateMaking
import HTTPSemantics
import Libevent
import Telemetry
import Testing

@testable import TLS
@testable import Upstream

/// Exchanges with origins that speak TLS.
@Suite(.timeLimit(.minutes(10))) struct SecureOriginTests {
    static let authority = TestAuthority()
    static let other = TestAuthority("Other Authority")
    static let good = authority.identity(for: "127.0.0.1", "app.test")
    static let answer: [ScriptedServer.Step] = [
        .request(), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ]
    static let whole = ["head 200", "body ok", "end"]

    /// An asker whose only server speaks TLS. The authority of the tests is believed.
    static func asker(
        _ scripts: [[ScriptedServer.Step]], _ identity: TLSIdentity = good,
        change: (inout UpstreamSettings) -> Void = { _ in }, server: (inout TLSServerSettings) throws -> Void = { _ in }
    ) throws -> Asker {
        var settings = TLSServerSettings()
        settings.identities = [identity]
        try server(&settings)
        return try Asker([scripts], tls: settings) {
            $0.tls.authorities = authority.file
            change(&$0)
        }
    }

    /// An asker that expects TLS of a server which speaks none.
    static func plainAsker(_ script: [ScriptedServer.Step], change: (inout UpstreamSettings) -> Void = { _ in }) throws
        -> Asker
    {
        try Asker([[script]], tls: nil) {
            $0.servers[0].isSecure = true
            $0.tls.authorities = authority.file
            change(&$0)
        }
    }

    // MARK: What works

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `an exchange works, and the next one on the same connection`(version: Int32) throws {
        let asker = try Self.asker([Self.answer + Self.answer])
        asker.servers[0].onStream = { $0.limit(to: version) }
        #expect(asker.ask(asker.exchange()) == Self.whole)
        #expect(asker.ask(asker.exchange(.post)) == Self.whole)
        let connections = asker.servers[0].connections
        #expect(connections.count == 1 && connections[0].requests.count == 2)
        #expect(connections[0].stream?.versionNumber == version)
        #expect(asker.metrics.read().upstreamConnectionsOpen == 1)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `the next connection resumes the session of the last one`(version: Int32) throws {
        let script: [ScriptedServer.Step] = [
            .request(), .send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"), .close,
        ]
        let asker = try Self.asker([script, script])
        asker.servers[0].onStream = { $0.limit(to: version) }
        for _ in 1...2 { #expect(asker.ask(asker.exchange()) == Self.whole) }
        #expect(asker.servers[0].connections.map(\.stream?.isResumed) == [false, true])
    }

    @Test(arguments: ["app.test", nil] as [String?])
    func `the configured name is asked for, and compared`(name: String?) throws {
        let asker = try Self.asker([Self.answer]) { $0.tls.serverName = name }
        #expect(asker.ask(asker.exchange()) == Self.whole)
        // An address is no name (RFC 6066 §3).
        #expect(asker.servers[0].connections[0].stream?.serverName == name)
    }

    @Test func `large content and a large response pass`() throws {
        let (sent, received) = (String(repeating: "a", count: 300_000), String(repeating: "b", count: 1_000_000))
        let asker = try Self.asker([
            [
                .request(content: sent.utf8.count),
                .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n\(received)"),
            ]
        ])
        var count = 0
        asker.intake = { text in
            count += text.utf8.count
            return .taken
        }
        let exchange = asker.exchange(.post, content: .length)
        let content = ByteSlice(sent)
        _ = exchange.send(content.span)
        exchange.endContent()
        #expect(asker.ask(exchange).last == "end")
        #expect(count == received.utf8.count && asker.servers[0].requests[0].hasSuffix("a"))
    }

    @Test func `a server that asks for a certificate gets ours`() throws {
        let own = Self.other.identity(for: "proxy.test")
        let asker = try Self.asker([Self.answer]) {
            $0.tls.identity = own
        } server: {
            $0.clientAuthorities = try Self.other.authorities
        }
        asker.servers[0].clientCertificates = .required
        #expect(asker.ask(asker.exchange()) == Self.whole)
        #expect(asker.servers[0].connections[0].stream?.peerSubject == "CN=proxy.test")
    }

    @Test func `whoever does not verify believes everybody`() throws {
        let asker = try Self.asker([Self.answer], TestAuthority.selfSigned(for: "other.test")) {
            $0.tls.verifies = false
        }
        #expect(asker.ask(asker.exchange()) == Self.whole)
    }

    // MARK: Idle connections

    @Test func `session tickets and new keys do not end an idle connection`() throws {
        let asker = try Self.asker([Self.answer + Self.answer])
        #expect(asker.ask(asker.exchange()) == Self.whole)
        let stream = asker.servers[0].connections[0].stream
        #expect(stream?.sendTicket() == true && stream?.sendNewKeys() == true)
        // The server's bytes are in the kernel by now: the loop reads them before the timer is due.
        asker.loop.schedule(after: 20_000_000) { asker.loop.stop() }
        asker.run()
        #expect(asker.pool.connections.map(\.idle) == [1])
        #expect(asker.ask(asker.exchange(.post)) == Self.whole)
        #expect(asker.servers[0].connections.count == 1)
    }

    @Test(arguments: [[ScriptedServer.Step.close], [.cut], [.send("HTTP/1.1 408 Request Timeout\r\n\r\n")]])
    func `an idle connection that ends, or brings bytes, is forgotten`(end: [ScriptedServer.Step]) throws {
        let asker = try Self.asker([Self.answer + [.pause] + end, Self.answer])
        #expect(asker.ask(asker.exchange()) == Self.whole)
        asker.servers[0].connections[0].goOn()
        asker.run(untilTrue: { asker.pool.connections.map(\.idle) == [0] })
        #expect(asker.ask(asker.exchange()) == Self.whole)
    }

    // MARK: The end of a response

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ScriptedServer.Step.cut, whole),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", .cut, whole),
        ("HTTP/1.1 200 OK\r\n\r\nok", .close, whole),
        ("HTTP/1.1 200 OK\r\n\r\nok", .cut, ["head 200", "body ok", "failed body"]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", .close, ["head 200", "body ok", "failed body"]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", .cut, ["head 200", "body ok", "failed body"]),
        ("HTTP/1.1 200 OK\r\nContent", .cut, ["failed closed"]),
        ("", .cut, ["failed closed"]),
    ])
    func `only the server's word ends a body without a length`(
        response: String, end: ScriptedServer.Step, events: [String]
    ) throws {
        let script: [ScriptedServer.Step] = [.request(), .send(response), end]
        let asker = try Self.asker([script, script])
        #expect(asker.ask(asker.exchange(.post)) == events)
        guard events.last != "end" else { return }
        #expect(asker.failure?.reason == (events.count == 1 ? .closedBeforeResponse : .cutOff))
    }
}

extension TLSStream {
    /// At the server's side, before the handshake.
    func limit(to version: Int32) {
        _ = unsafe SSL_ctrl(ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
    }

    var versionNumber: Int32 { unsafe SSL_version(ssl) }

    func sendTicket() -> Bool { unsafe SSL_new_session_ticket(ssl) == 1 && SSL_do_handshake(ssl) == 1 }

    func sendNewKeys() -> Bool {
        unsafe SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(ssl) == 1
    }
}
