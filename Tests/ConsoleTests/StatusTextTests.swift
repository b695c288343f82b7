import Console
import Testing

@Suite struct StatusTextTests {
    @Test func `the state is printed in aligned lines`() throws {
        let lines = StatusText.lines(try status(limits: true), width: 100)
        #expect(
            lines == [
                "coalesced 0.1.0, running for 3d 4h, reloaded 12m ago: ok",
                "",
                "listening   127.0.0.1:8080, unix:/run/a",
                "workers     2",
                "clients     1204 of 19050",
                "memory      231 MiB of 256 MiB: 219 MiB stored (6120 responses), 12 MiB in flight",
                "upstream    wp: 12 of 256 fetches running, 0 queued",
                "              http://127.0.0.1:9101  up  12 in use  20 idle",
                "upstream    api: 41 of 41 fetches running, 3 queued",
                "              http://127.0.0.1:9102  up for 1m                              41 in use  3 idle",
                "              http://127.0.0.1:9199  EJECTED for 31s (503), next try in 9s   0 in use  0 idle",
                "fetches     2",
                "  FETCH OF  AGE   BYTES  WAITING      PHASE  KEY",
                "  api       41s  38 MiB        1  streaming  http a /big?8",
                "  wp         1s     0 B        2  executing  http a /b?[2J",
            ])
    }

    @Test func `a tier shared with other machines has a line for each server, and what happened there`() throws {
        let lines = StatusText.lines(try json(sharedStatus), width: 200)
        let start = try #require(lines.firstIndex { $0.hasPrefix("shared ") })
        #expect(
            lines[start...(start + 3)] == [
                "shared      redis://10.0.0.1:6379: ready, 3 of 3 connections",
                "            redis://10.0.0.2:6379: UNREACHABLE (the engine closed the connection), 1 of 3 connections, 1 breakers open",
                "              purges: 12 known, 1 to be written, log read 2s ago",
                "              fetches: hit 7, led 3; 1.0 KiB read, 2.0 MiB written",
            ], "\(lines)")
        let empty = StatusText.lines(try json("{\"shared\": {}}"), width: 80)
        #expect(empty.contains("shared      no server was asked yet"), "\(empty)")
    }

    @Test(arguments: [
        (1_209_600, "expires in 14d 0h"), (1_209_599, "EXPIRES in 13d 23h"), (60, "EXPIRES in 60s"), (0, "EXPIRED"),
    ])
    func `each certificate has a line, which is conspicuous where little time is left`(left: Int, text: String) throws {
        let lines = StatusText.lines(try secureStatus(left: left), width: 200)
        let start = try #require(lines.firstIndex { $0.hasPrefix("tls ") })
        #expect(
            lines[start...(start + 1)] == [
                "tls         /etc/ssl/site.pem: expires in 60d 0h (www.example.com, example.com)",
                "            /etc/ssl/shop.pem: \(text)",
            ], "\(lines)")
    }

    @Test func `a missing value is left out`() throws {
        let lines = StatusText.lines(try status(limits: false), width: 100)
        #expect(lines[4] == "clients     1204" && lines[6] == "upstream    wp: 12 fetches running, 0 queued")
        #expect(
            lines[12...] == [
                "  FETCH OF  WAITING      PHASE  KEY", "  api             1  streaming  http a /big?8",
                "  wp              2  executing  http a /b?[2J",
            ])
        #expect(StatusText.lines(try json("{}"), width: 100).last == "fetches     none")
    }

    @Test(arguments: [1, 20, 40, 79])
    func `no line is wider than the terminal`(width: Int) throws {
        let lines = StatusText.lines(try status(limits: true), width: width)
        #expect(lines.count == 15 && lines.allSatisfy { $0.count <= width })
        #expect(lines[5].count == width && lines[5].hasSuffix("…"))
    }

    @Test(arguments: [60, 80])
    func `a failing server is visible on a narrow terminal, however long its name`(width: Int) throws {
        for name in ["http://127.0.0.1:9199", "unix:/srv/applications/shop/production/current/tmp/sockets/app.sock"] {
            let server = "{\"server\": \"\(name)\", \"state\": \"ejected\", \"state_seconds\": 31, \"in_use\": 1024}"
            let lines = StatusText.lines(
                try json("{\"upstreams\": [{\"name\": \"a\", \"servers\": [\(server)]}]}"), width: width)
            #expect(lines.contains { $0.contains("  EJECTED for 31s") }, "\(lines)")
            #expect(lines.contains { $0.contains(name.suffix(8)) }, "\(lines)")
        }
    }

    @Test func `each state of a server is told with what matters about it`() throws {
        let servers = [
            #""server": "http://a:1", "state": "slow-start", "state_seconds": 5, "reason": "connect", "weight": 3, "backup": false"#,
            #""server": "http://b:1", "state": "probing", "state_seconds": 70, "reason": "head-timeout", "next_try_seconds": 2"#,
            #""server": "http://c:1", "state": "down", "state_seconds": 9, "reason": "check: 500", "next_try_seconds": 4, "last_check": {"succeeded": false, "reason": "500", "seconds": 1}"#,
            #""server": "http://d:1", "state": "drained", "state_seconds": 200, "weight": 1, "backup": true, "last_check": {"succeeded": true, "seconds": 1}"#,
        ].map { "{\($0), \"in_use\": 1, \"idle\": 2}" }
        let lines = StatusText.lines(
            try json("{\"upstreams\": [{\"name\": \"a\", \"servers\": [\(servers.joined(separator: ","))]}]}"),
            width: 120)
        #expect(
            lines[7...10] == [
                "              http://a:1  slow-start for 5s                               1 in use  2 idle  weight 3",
                "              http://b:1  PROBING for 70s (head-timeout), next try in 2s  1 in use  2 idle",
                "              http://c:1  DOWN for 9s (check: 500), next try in 4s        1 in use  2 idle  check 500 1s ago",
                "              http://d:1  drained for 3m                                  1 in use  2 idle  backup, check ok 1s ago",
            ], "\(lines)")
    }

    @Test(arguments: [(60, "reload FAILED 12m ago: …"), (80, "reload FAILED 12m ago: former settings stay")])
    func `a failed reload is visible on a narrow terminal`(width: Int, end: String) throws {
        let text =
            "{\"version\": \"0.1.0\", \"state\": \"running\", \"uptime_seconds\": 273600, \"last_reload\": {\"succeeded\": false, \"seconds\": 720}}"
        let line = StatusText.lines(try json(text), width: width)[0]
        #expect(line.hasSuffix(end) && line.count <= width, "\(line)")
    }

    @Test func `the oldest of many fetches are listed`() throws {
        let fetches = (1...50).map { "{\"number\": \($0), \"key\": \"k\($0)\", \"seconds\": \(100 - $0)}" }
        let lines = StatusText.lines(
            try json("{\"fetches\": [\(fetches.reversed().joined(separator: ","))]}"), width: 80)
        #expect(lines.suffix(6).map { $0.split(separator: " ").last } == ["k1", "k2", "k3", "k4", "k5", "more"])
        #expect(lines.last == "  and 45 more")
    }
}
