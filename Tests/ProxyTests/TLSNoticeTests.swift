import Bytes
import Logging
import RouteTesting
import Routing
import TLS
import Testing
import Upstream

@testable import Proxy

/// What the log says at the start, and at a reload, of the TLS to an origin.
struct TLSNoticeTests {
    /// Keeps the lines that are logged.
    private struct Keeper: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { lines.all.withLock { $0.append("\(event.level) \(event.message)") } }
    }

    private final class Lines: Sendable {
        let all = Guarded<[String]>([])
    }

    private static func told(_ change: (inout UpstreamSettings) -> Void) -> [String] {
        var upstream = UpstreamSettings.named("one")
        change(&upstream)
        let lines = Lines()
        let log = Logger(label: "tests") { _ in Keeper(lines: lines) }
        for origin in LoopSettings(ProxySettings(), upstreams: [upstream]).origins { TLSNotices.tell(of: origin, log) }
        return lines.all.withLock { $0 }
    }

    @Test func `an origin whose certificates are not compared is named`() {
        #expect(Self.told { $0.tls.verifies = false } == [])
        let lines = Self.told {
            $0.servers[0].isSecure = true
            $0.tls.verifies = false
        }
        #expect(lines.count == 1 && lines[0].hasPrefix("notice upstream one: tls.verify is off: "))
    }

    @Test func `an origin that believes nobody is named, with the reason`() {
        let lines = Self.told {
            $0.servers[0].isSecure = true
            $0.tls.authorities = NamedFile(path: "/empty.pem")
        }
        #expect(lines.count == 1 && lines[0].hasPrefix("error upstream one: no TLS handshake"))
        #expect(lines[0].hasSuffix("/empty.pem: it holds no certificate in PEM form"))
    }
}
