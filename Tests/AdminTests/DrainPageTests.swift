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

/// `/drain` and `/undrain` of a proxy whose workers do not run.
@Suite(.timeLimit(.minutes(10))) struct DrainPageTests {
    private static func answer(
        to content: String, _ path: String = "/drain", servers: [UpstreamServer], whileUpgrading: Bool = false
    ) throws -> (status: Int, text: String) {
        let loop = try EventLoop()
        defer { loop.finish() }
        let server = ProxyServer(
            ProxySettings(), upstreams: [UpstreamSettings(name: "one", servers: servers)], storage: StorageSettings(),
            accessLog: AccessLogSettings(), on: loop, log: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
        server.purgeDesk.isClosed = whileUpgrading
        var answer: AdminPage?
        AdminPages(server, AdminSettings(), version: "0", on: loop).page(for: .post, path, content: content) {
            answer = $0
        }
        let page = try #require(answer)
        return (Int(page.status.code), String(page.content))
    }

    @Test(arguments: [
        "one http://app.example:80", "one http://app.example", "one http://APP.example/", " one   http://app.example ",
        "\none http://app.example:80\r\n",
    ])
    func `a server is named as in a configuration file`(content: String) throws {
        let (status, text) = try Self.answer(to: content, servers: [UpstreamServer(host: "app.example")])
        #expect(status == 200 && text.hasPrefix("upstream one: server http://app.example:80 is drained: 0 "), "\(text)")
    }

    @Test func `a path may have spaces, and addresses are compared whole`() throws {
        let servers = [UpstreamServer.unix(path: "/run/my app.sock"), UpstreamServer(host: "192.0.2.1", port: 8000)]
        #expect(try Self.answer(to: "one unix:/run/my app.sock", servers: servers).status == 200)
        #expect(try Self.answer(to: "one 192.0.2.1:8000", servers: servers).status == 200)
        for other in [
            "unix:/run/my", "192.0.2.1", "http://192.0.2.1:800", "http://192.0.2.1:8000/a", "/run/my app.sock",
        ] {
            #expect(try Self.answer(to: "one \(other)", servers: servers).status == 404, "\(other)")
        }
    }

    @Test func `of many servers, an answer names some`() throws {
        let servers = (0..<60).map { UpstreamServer(host: "a\($0).example") }
        let (status, text) = try Self.answer(to: "one http://b", servers: servers)
        #expect(status == 404 && text.hasSuffix(", http://a49.example:80 and 10 more\n"), "\(text)")
    }

    @Test func `a server that was not drained gets requests as before`() throws {
        let (status, text) = try Self.answer(
            to: "one http://app.example", "/undrain", servers: [UpstreamServer(host: "app.example")])
        #expect(status == 200 && text == "upstream one: server http://app.example:80 gets requests again\n")
    }

    @Test func `while another program takes over, nothing is drained`() throws {
        let (status, text) = try Self.answer(
            to: "one http://app.example", servers: [UpstreamServer(host: "app.example")], whileUpgrading: true)
        #expect(status == 503 && text.hasSuffix("send it again.\n"), "\(text)")
    }
}
