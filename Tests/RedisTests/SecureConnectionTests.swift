import Bytes
import CertificateMaking
import Libevent
import LoopTesting
import TLS
import Testing

@testable import Redis

/// A client and an engine that speaks TLS.
struct SecureConnectionTests {
    @Test(arguments: ["TLSv1.2", "TLSv1.3"]) func `commands, pushes and megabytes pass`(version: String) throws {
        let engine = try SecureEngine { _ in ["--tls-protocols", version] }
        var (client, received): (TestClient?, ByteSlice?)
        let buffer = ByteBuffer(capacity: 5 << 20)
        for index in 0..<5 << 20 { buffer.append(UInt8(truncatingIfNeeded: index &* 7 >> 3)) }
        let text = buffer.copied()
        try onLoop { loop in
            client = TestClient(engine.address, on: loop, tls: engine.peers())
            client?.onPush = { $0.end() }
            client?.start { client, _ in
                for number in 0..<1000 { client.send(command("SET", "k\(number)", "\(number)")) }
                let set = RedisCommand("SET")
                set.add(key: ByteSlice("k"))
                set.add(text)
                client.send(set)
                client.client.send(command("GET", "k")) { reply in
                    if case .value(.bulk(let text)) = reply { received = text }
                    // The engine tells of the key that was read.
                    client.send(command("SET", "k", "other"))
                }
            }
        }
        #expect(received == text)
        #expect(client?.events == ["ready"] && client?.pushes.first?.contains("invalidate") == true)
        #expect(client?.replies.prefix(1001) == Array(repeating: "+OK", count: 1001)[...])
    }

    /// The events of a client until its first attempt has failed, or has not.
    private func firstEvent(_ address: RedisAddress, _ peers: TLSPeers, limit: Int64 = 5 * second) throws -> String? {
        var client: TestClient?
        try onLoop { loop in
            client = TestClient(address, on: loop, tls: peers) { $0.setUpLimit = limit }
            client?.start { client, _ in client.end() }
        }
        return client?.events.first
    }

    @Test func `an engine is believed by its authority and its name alone, and a refusal has the reason`() throws {
        let engine = try SecureEngine(for: "127.0.0.1", "engine.test")
        #expect(try firstEvent(engine.address, engine.peers()) == "ready")
        #expect(try firstEvent(engine.address, engine.peers { $0.serverName = "engine.test" }) == "ready")
        let refused = "not connected: no TLS with the engine: "
        #expect(
            try firstEvent(engine.address, engine.peers { $0.serverName = "other.test" })
                == refused + "hostname mismatch")
        let other = TestAuthority("Other")
        #expect(
            try firstEvent(engine.address, engine.peers { $0.authorities = other.file })
                == refused + "self-signed certificate in certificate chain")
        #expect(
            try firstEvent(
                engine.address,
                engine.peers {
                    $0.authorities = other.file
                    $0.verifies = false
                }) == "ready")
        // Authorities that cannot be read let nobody be believed.
        let damaged = try firstEvent(engine.address, engine.peers { $0.authorities?.content = ByteSlice("no") })
        #expect(damaged?.hasPrefix(refused + "no certificate can be compared: ") == true, "\(damaged ?? "")")
    }

    @Test(arguments: ["TLSv1.2", "TLSv1.3"])
    func `an engine that asks for a certificate is shown one, and its refusal has its words`(version: String) throws {
        let engine = try SecureEngine { _ in ["--tls-auth-clients", "yes", "--tls-protocols", version] }
        let (own, strange) = (engine.authority.identity(for: "proxy"), TestAuthority("Other").identity(for: "proxy"))
        #expect(try firstEvent(engine.address, engine.peers { $0.identity = own }) == "ready")
        for identity in [nil, strange] {
            let event = try firstEvent(engine.address, engine.peers { $0.identity = identity })
            #expect(
                event?.hasPrefix("not connected: no TLS with the engine: ") == true && event?.contains("alert") == true,
                "\(event ?? "")")
        }
    }

    @Test func `a new connection resumes the session of the one before`() throws {
        let engine = try SecureEngine()
        var (client, resumed): (TestClient?, [Bool?]) = (nil, [])
        try onLoop { loop in
            client = TestClient(engine.address, on: loop, tls: engine.peers()) { $0.shortestPause = millisecond }
            client?.start { client, event in
                guard event == "ready" else { return }
                resumed.append(client.client.stream?.isResumed)
                guard resumed.count < 3 else { return client.end() }
                // The tickets have come with the replies.
                client.send(command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"))
            }
        }
        #expect(resumed == [false, true, true])
    }

    @Test func `a port without TLS is no engine, and a silent one holds nothing for longer than the limit`() throws {
        var client: TestClient?
        let peers = TLSPeers(TLSPeerSettings())
        for (answers, expected) in [
            (true, "no TLS with the engine: wrong version number"),
            (false, "the TLS handshake was not done in time; perhaps the engine does not speak TLS at this port"),
        ] {
            var engine: ScriptedEngine?
            try onLoop { loop in
                let made = try ScriptedEngine(on: loop)
                if answers { made.onConnection = { $0.say("-ERR unknown command, with args beginning with\r\n") } }
                engine = made
                var address = made.address
                address.isSecure = true
                client = TestClient(address, on: loop, tls: peers) {
                    $0.setUpLimit = answers ? second : 50 * millisecond
                }
                client?.start { client, _ in client.end() }
            }
            #expect(client?.events.first == "not connected: \(expected)")
            _ = engine
        }
    }

    @Test func `an engine with TLS is not spoken to in the clear`() throws {
        let engine = try SecureEngine()
        var address = engine.address
        address.isSecure = false
        let event = try firstEvent(address, engine.peers())
        #expect(event?.hasPrefix("not connected: ") == true, "\(event ?? "")")
    }
}
