import Testing

/// Origins that close idle connections by the clock: a request that cannot be sent twice is lost to none of them.
@Suite(.largeScenario) struct IdleOriginTests {
    private static let keepsAll = Setting.other(section: "upstream", key: "max-idle-connections", value: "1000")

    /// Rounds of POSTs by all clients, each so long after the one before as the origin keeps a connection, and up to
    /// 12 ms sooner or later.
    /// - Returns: how many of each round were not answered by the origin.
    private static func post(_ clients: Int, rounds: Int, after time: Duration, _ proxy: Program) throws -> [Int] {
        let request = proxy.request("POST", "/pay", body: "once")
        let visitor = Visitor(request: Array(request.utf8), method: "POST", keepsOpen: true)
        let crowd = Crowd(at: proxy.endpoint, Array(repeating: visitor, count: clients))
        var lost: [Int] = []
        for round in 0...rounds {
            let answers = crowd.finished()
            if round > 0 { lost.append(answers.count { $0.status != 200 }) }
            guard round < rounds else { break }
            let offset = Duration.milliseconds(-12) + .milliseconds(24) * round / max(1, rounds - 1)
            System.nap(time + offset)
            crowd.again()
        }
        crowd.close()
        return lost
    }

    @Test(arguments: [false, true], ["1.1", "1.0"])
    func `no POST is lost to an origin that closes idle connections after two seconds`(
        statesTimeout: Bool, version: String
    )
        throws
    {
        try scenario(.workers(1), .maxConcurrentFetches(1_000), Self.keepsAll) { origin, proxy in
            origin.closeIdleConnections(after: .seconds(2))
            let fields =
                ["Content-Length: 2", "Connection: keep-alive"] + (statesTimeout ? ["Keep-Alive: timeout=2"] : [])
            let answer = (["HTTP/\(version) 200 OK"] + fields + ["", "ok"]).joined(separator: "\r\n")
            // All of a round are asked at the same time, each on a connection of its own.
            origin.on("*") { _ in [.requestBody, .wait(.milliseconds(60)), .raw(answer)] }
            let lost = try Self.post(400, rounds: 4, after: .seconds(2), proxy)
            #expect(lost.allSatisfy { $0 == 0 }, "\(lost)")
            #expect(origin.count("/pay") == 5 * 400)
        }
    }

    @Test func `no POST is lost to an origin that closes idle connections sooner, after a first close`() throws {
        try scenario(.workers(1), .maxConcurrentFetches(1_000), Self.keepsAll) { origin, proxy in
            origin.closeIdleConnections(after: .milliseconds(300))
            origin.on("*") { _ in [.requestBody, .wait(.milliseconds(60)), .answer(200, body: "ok")] }
            // Nobody needs them any more when they are closed.
            try proxy.get("/")
            try eventually("it is closed") { try proxy.metric(.openUpstreams) == 0 }
            let lost = try Self.post(400, rounds: 4, after: .milliseconds(300), proxy)
            #expect(lost.allSatisfy { $0 == 0 }, "\(lost)")
        }
    }

    @Test
    func `200 clients that POST every two seconds through gunicorn lose no request`()
        throws
    {
        let gunicorn = try Gunicorn(
            """
            def app(environ, start_response):
                environ['wsgi.input'].read()
                start_response('200 OK', [('Content-Length', '2')])
                return [b'ok']
            """, ["--workers", "2", "--threads", "8"])
        defer { gunicorn.stop() }
        let proxy = try Program.serve(upstream: gunicorn.url)
        defer { proxy.stop() }
        let lost = try Self.post(200, rounds: 5, after: .seconds(2), proxy)
        #expect(lost.allSatisfy { $0 == 0 }, "\(lost)")
    }
}
