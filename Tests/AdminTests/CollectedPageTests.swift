import Bytes
import HTTPSemantics
import Libevent
import Logging
import Proxy
import Routing
import Storage
import Telemetry
import Testing
import Upstream

@testable import Admin

/// Pages that all workers have a share of.
@Suite(.timeLimit(.minutes(10))) struct CollectedPageTests {
    /// Makes `requests` for a page, one after another without a turn of the loop in between, once the workers run; and
    /// one more when all are answered.
    private static func answers(_ requests: Int, _ path: String) throws -> (same: [AdminPage], later: AdminPage?) {
        let loop = try EventLoop()
        var settings = ProxySettings()
        settings.workers = 2
        settings.listeners = [.ipv4(.loopback, port: 0)]
        let upstream = UpstreamSettings(name: "one", servers: [UpstreamServer(host: "127.0.0.1")])
        let server = ProxyServer(
            settings, upstreams: [upstream], storage: StorageSettings(), accessLog: AccessLogSettings(), on: loop,
            log: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        let pages = AdminPages(server, AdminSettings(), version: "0", on: loop)
        var (same, later) = ([AdminPage](), AdminPage?.none)
        func ask(_ completion: @escaping (AdminPage) -> Void) {
            pages.page(for: same.count % 2 == 0 ? .get : .head, path, content: "", completion)
        }
        server.start { _ in
            for _ in 0..<requests {
                ask { page in
                    same.append(page)
                    guard same.count == requests else { return }
                    // Not from inside the operation, which has not ended yet.
                    loop.schedule(after: 0) {
                        ask { page in
                            later = page
                            loop.stop()
                        }
                    }
                }
            }
        }
        loop.run()
        server.stop()
        loop.finish()
        return (same, later)
    }

    @Test(arguments: ["/metrics", "/status"]) func `requests that come while a page is collected get the same bytes`(
        _ path: String
    ) throws {
        let (same, later) = try Self.answers(50, path)
        #expect(same.count == 50 && same.allSatisfy { $0.status == .ok && !$0.content.isEmpty })
        #expect(Set(same.map(\.content)).count == 1)
        #expect(later?.status == .ok)
        // Nothing is kept: the workers have used more time.
        if path == "/metrics" { #expect(later?.content != same.first?.content) }
    }
}
