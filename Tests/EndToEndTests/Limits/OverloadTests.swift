import Glibc
import Testing

/// Every bound answers at once with something a client understands.
@Suite(.scenario) struct OverloadTests {
    @Test(
        .overHTTP1("the response comes before the client has said its version"),
        .clientsInTheClear("without a handshake there are no words"))
    func `over the connection limit, a client gets 503 with Retry-After`() throws {
        try scenario(.maxConnections(10)) { origin, proxy in
            let gate = Gate()
            origin.on("/x") { _ in [.gate(gate), .answer(200, "Cache-Control: max-age=60", body: "x")] }
            let crowd = proxy.crowd(10, get: "/x", keepsOpen: true)
            try proxy.joined(10)
            let refused = try proxy.get("/x")
            #expect(refused.status == 503)
            #expect(refused["retry-after"] != nil)
            gate.open()
            #expect(crowd.finished().allSatisfy { $0.status == 200 })
            crowd.close()
            try eventually("there is room again") { try proxy.get("/x").status == 200 }
        }
    }

    @Test(
        .overHTTP1("the response comes before the client has said its version"),
        .clientsInTheClear("without a handshake there are no words"))
    func `a rejected client can read the whole response, whatever the client sends`() throws {
        try scenario(.maxConnections(1), .workers(1)) { origin, proxy in
            let first = try proxy.connect()
            try first.send("GET /x HT")
            try eventually("it is let in") { try proxy.metric(.openClients) == 1 }
            let before = proxy.openDescriptors
            var others: [Conversation] = []
            // Each request is there before its connection is accepted.
            try proxy.whileStopped {
                others = try (0..<10).map { _ in try proxy.connect() }
                for client in others { try client.send(proxy.request("POST", "/x", body: "0123456789")) }
            }
            for client in others {
                let answer = try client.answer(to: "POST")
                #expect(answer.status == 503)
                #expect(client.isClosed())
                #expect(!client.isReset)
            }
            // They do not close: their time ends.
            try eventually("their descriptors are given back") { proxy.openDescriptors <= before }
            try proxy.whileStopped { others = try (0..<60).map { _ in try proxy.connect() } }
            for client in others { #expect(try client.answer().status == 503) }
            // Others are open for a moment, such as that of a question to the admin listener.
            try eventually("a bounded number is open") { proxy.openDescriptors <= before + 16 }
            for client in others { client.close() }
            try eventually("they are gone") { proxy.openDescriptors <= before }
        }
    }

    @Test func `limits and their use are in the metrics and in the status`() throws {
        try scenario(.maxConnections(40), .maxConcurrentFetches(2)) { origin, proxy in
            let gate = Gate()
            origin.on("*") { _ in [.gate(gate), .answer(200, body: "x")] }
            let crowds = (1...3).map { proxy.crowd(1, get: "/\($0)") }
            try eventually("one waits for a slot") { try proxy.metric(.queued) == 1 }
            #expect(try [proxy.metric(.inFlight), proxy.metric(.slots), proxy.metric(.clientLimit)] == [3, 2, 40])
            let status = try proxy.status()
            guard case .array(let upstreams) = status["upstreams"] else {
                throw Late(what: "upstreams", place: "status")
            }
            #expect(upstreams.map { $0["slots"] } == [.number(2)] && status["clients"]?["limit"] == .number(40))
            gate.open()
            for crowd in crowds { #expect(crowd.finished().allSatisfy { $0.text == "x" }) }
        }
    }

    @Test(
        .overHTTP1("the response comes before the client has said its version"),
        .clientsInTheClear("without a handshake there are no words"))
    func `over the connection limit, the connection that has been idle for longest is closed`() throws {
        try scenario(.maxConnections(5), .workers(1)) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            var clients = try (0..<5).map { _ in try proxy.connect() }
            func ask(_ client: Conversation) throws {
                try client.send(proxy.request("GET", "/x"))
                guard try client.answer().text == "x" else { throw Late(what: "x", place: "an idle connection") }
                // The clock of the proxy goes on.
                System.nap(.milliseconds(5))
            }
            for client in clients { try ask(client) }
            // The second has been idle for longest; not for long enough, at first.
            try ask(clients[0])
            let early = try proxy.get("/x")
            #expect(early.status == 503)
            System.nap(.milliseconds(1100))
            clients.append(try proxy.connect())
            try ask(clients[5])
            #expect(clients[1].isClosed())
            for index in [0, 2, 3, 4, 5] { try ask(clients[index]) }
            let refused = try proxy.metric(.refusedClients)
            #expect(refused == 1)
        }
    }

    @Test(
        .clientsInTheClear("they send while the program is stopped, which answers no handshake"),
        arguments: [true, false])
    func `over the connection limit, no connection whose request has arrived is closed`(_ comesBefore: Bool) throws {
        try scenario(.maxConnections(5), .workers(1)) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", body: "x")] }
            let clients = try (0..<5).map { _ in try proxy.connect() }
            for client in clients {
                try client.send(proxy.request("GET", "/x"))
                let answer = try client.answer()
                #expect(answer.text == "x")
            }
            var others: [Conversation] = []
            func ask(_ clients: [Conversation]) throws {
                for client in clients { try client.send(proxy.request("GET", "/x")) }
            }
            // Who is idle for so long makes room.
            System.nap(.milliseconds(1100))
            // In the order in which the loop finds them.
            try proxy.whileStopped {
                if comesBefore { try ask(clients) }
                others = try (0..<3).map { _ in try proxy.connect() }
                try ask(others)
                if !comesBefore { try ask(clients) }
            }
            for client in clients {
                let answer = try client.answer()
                #expect(answer.text == "x")
            }
            // Nor afterwards.
            try ask(clients)
            for client in clients {
                let answer = try client.answer()
                #expect(answer.text == "x")
            }
        }
    }

    @Test func `no more clients are accepted than descriptors permit, and the admin listener responds`() throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        origin.on("*") { _ in [.answer(200, body: "x")] }
        let folder = try System.makeTemporaryFolder()
        try System.write(Setting.file([.workers(1)], upstream: origin.url), to: "\(folder)/c.yaml")
        let program = try Program(
            folder: folder,
            ["--config", "\(folder)/c.yaml", "--listen", "127.0.0.1:0", "--admin", "unix:\(folder)/admin.sock"],
            descriptors: 64)
        defer { program.stop() }
        try program.waitUntilListening(1)
        // Told once, and again when it changes: so few are worth a line though the operator chose no number.
        for (reload, settings, told) in [
            (1, [.workers(1)], 1), (2, [.workers(1), .maxConnections(5000)], 2),
            (3, [.workers(1), .maxConnections(5000)], 2),
        ] as [(Int, [Setting], Int)] {
            try System.write(Setting.file(settings, upstream: origin.url), to: "\(folder)/c.yaml")
            program.signal(SIGHUP)
            try eventually("it is reloaded") { program.diagnostics.matches(of: #/reloaded /#).count == reload }
            #expect(program.diagnostics.matches(of: #/clients\.max-connections/#).count == told)
        }
        let clients = try (0..<150).map { _ in try program.connect() }
        defer { for client in clients { client.close() } }
        // Not the 5000 of the file.
        let limit = try program.metric(.clientLimit)
        #expect(limit > 0 && limit < 32)
        try eventually("all were let in or turned away") { try program.metric(.openClients) <= limit }
        let health = try program.admin.get("/healthz")
        #expect(health.status == 200)
        // Once the others have been idle for long enough; with a descriptor left for the connection to its origin.
        try eventually("the last to come is answered") { try program.get("/x").text == "x" }
    }

    @Test(arguments: [(20_000, true), (nil, false)])
    func `a client limit below the number in the file is reported, even if that is the default`(
        number: Int?, isTold: Bool
    ) throws {
        let folder = try System.makeTemporaryFolder()
        let settings = [.workers(1)] + (number.map { [.maxConnections($0)] } ?? []) as [Setting]
        try System.write(Setting.file(settings, upstream: "http://127.0.0.1:9"), to: "\(folder)/c.yaml")
        let program = try Program(
            folder: folder,
            ["--config", "\(folder)/c.yaml", "--listen", "127.0.0.1:0", "--admin", "unix:\(folder)/admin.sock"],
            descriptors: 4000)
        defer { program.stop() }
        try program.waitUntilListening(1)
        let limit = try program.metric(.clientLimit)
        #expect(limit > 2000 && limit < 4000)
        #expect(program.diagnostics.contains("clients.max-connections") == isTold, "\(program.diagnostics)")
    }

    /// Where it has not, the loop that accepts one connection too many waits for all other threads' processors.
    @Test func `the kernel's descriptor table has room for all clients, from the start and after a reload`() throws {
        try scenario(.maxConnections(700)) { origin, proxy in
            #expect(proxy.descriptorTableSize >= min(700, System.descriptorLimit))
            try proxy.rewriteConfiguration(upstream: origin.url, .maxConnections(9000))
            proxy.signal(SIGHUP)
            let enough = min(9000, System.descriptorLimit / 2)
            try eventually("it is reloaded") { proxy.descriptorTableSize >= enough }
        }
    }

    @Test func `bodies that fill all memory do not wait for each other for ever`() throws {
        try scenario(.memory(mebibytes: 8)) { origin, proxy in
            let rest = Gate()
            for number in 0..<200 {
                origin.on("/\(number)") { _ in
                    [
                        .head(200, "Cache-Control: no-store", "Content-Length: 400000"), .pattern(0..<70_000),
                        .gate(rest), .pattern(70_000..<400_000),
                    ]
                }
            }
            let clients = (0..<200).map { proxy.crowd(1, get: "/\($0)") }
            try eventually("each was asked for, or refused", within: .seconds(60)) {
                let refused = clients.count { $0.pending == 0 }
                let asked = (0..<200).reduce(0) { $0 + origin.count("/\($1)") }
                return asked + refused >= 200
            }
            rest.open()
            for client in clients {
                let answer = client.finished(within: .seconds(20))[0]
                #expect(answer.isWhole(400_000) || answer.status == 503)
            }
        }
    }

    /// They are let in while there is memory; when their heads come, others have it, for a moment or longer.
    @Test(arguments: [false, true])
    func `a head is not sent without memory for its content, unless the request was unsafe`(_ isForAMoment: Bool)
        throws
    {
        try scenario(.memory(mebibytes: 8), .accessLog, .whenExceeded("stale")) { origin, proxy in
            let (heads, rest) = (Gate(), Gate())
            let large = (0..<90).map { "/large/\($0)" }
            for target in large {
                origin.on(target) { _ in
                    [
                        .head(200, "Cache-Control: no-store", "Content-Length: 4000000"), .pattern(0..<1000),
                        .gate(rest), .pattern(1000..<4_000_000),
                    ]
                }
            }
            origin.on("/streamed") { _ in
                [
                    .gate(heads), .head(200, "Cache-Control: max-age=60", "Transfer-Encoding: chunked"),
                    .chunk(pattern: 0..<200_000), .lastChunk(),
                ]
            }
            origin.on("/old") { request in
                let fields = "Cache-Control: max-age=10"
                return request.number == 1
                    ? [.answer(200, fields, "Age: 20", "ETag: \"1\"", pattern: 10)]
                    : [.gate(heads), .answer(200, fields, pattern: 200_000)]
            }
            origin.on("*") { _ in [.gate(heads), .answer(200, "Cache-Control: max-age=60", pattern: 200_000)] }
            try proxy.get("/old")
            let others = large.map { proxy.crowd(1, get: $0, pace: .stuck) }
            try eventually("all have begun") { large.allSatisfy { (origin.requests($0).first?.sent ?? 0) > 0 } }

            let (shared, old) = (proxy.crowd(2, get: "/late"), proxy.crowd(1, get: "/old"))
            let streamed = proxy.crowd(1, get: "/streamed")
            let done = try proxy.connect()
            try done.send(proxy.request("POST", "/done", ["Content-Length: 0"]))
            try eventually("they are asked for") {
                origin.count("/late") + origin.count("/done") + origin.count("/old") + origin.count("/streamed") == 5
            }
            try proxy.joined(96)
            rest.open()
            // While something is sent, some of it is given back for a moment.
            var (sent, unchanged) = (-1, 0)
            try eventually("all memory is taken, and stays so", within: .seconds(60)) {
                let isTaken = try proxy.metric(.inFlightBytes) + proxy.metric(.storedBytes) > (8 << 20) - (64 << 10)
                let sentByNow = try proxy.metric(.clientSentBytes)
                unchanged = isTaken && sentByNow == sent ? unchanged + 1 : 0
                sent = sentByNow
                return unchanged == 20
            }

            heads.open()
            if isForAMoment {
                try eventually("the head is there") { (origin.requests("/late").first?.sent ?? 0) > 0 }
                for other in others { other.close() }
            }
            for answer in shared.finished() + old.finished() + streamed.finished() {
                if isForAMoment {
                    #expect(answer.isWhole(200_000))
                } else {
                    // Nor is anything stale sent: the origin has answered.
                    let status = answer.cacheStatus
                    #expect(answer.status == 503 && status.hasSuffix("detail=memory-full"), "\(status)")
                    #expect(status.contains("fwd-status=200"), "\(status)")
                }
            }
            for other in others { other.close() }
            let answer = try done.answer()
            #expect(answer.isWhole(200_000))
            try eventually("all is given back") { try proxy.metric(.inFlightBytes) == 0 }
        }
    }

    @Test(arguments: ["503", "stale", "pass"])
    func `over the queue limit of an origin, a request gets 503 or a stale response`(_ whenExceeded: String) throws {
        try scenario(.maxConcurrentFetches(1), .maxQueuedFetches(1), .whenExceeded(whenExceeded)) { origin, proxy in
            let gate = Gate()
            origin.on("/stale") { _ in
                [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"1\"", body: "stale")]
            }
            origin.on("*") { _ in [.gate(gate), .answer(200, body: "in turn")] }
            try proxy.get("/stale")
            let first = proxy.crowd(1, get: "/first")
            try eventually("it is asked") { origin.count("/first") == 1 }
            let second = proxy.crowd(1, get: "/second")
            try proxy.joined(3)
            let refused = try proxy.get("/third")
            #expect(
                refused.status == 503 && refused["retry-after"] != nil
                    && refused.cacheStatus.contains("detail=queue-full"))
            try eventually("the operator is told") {
                proxy.diagnostics.contains("upstream origin: answered 503 (queue-full) for GET ")
            }
            let other = try proxy.get("/stale")
            #expect(
                whenExceeded == "503" ? other.status == 503 : other.text == "stale",
                "\(other.status) \(other.cacheStatus)")
            #expect(other.cacheStatus.contains("detail=queue-full"))
            gate.open()
            let answers = first.finished() + second.finished()
            #expect(answers.allSatisfy { $0.text == "in turn" })
            #expect(origin.count("/third") == 0 && origin.count("/stale") == 1)
        }
    }

    struct Bound: Sendable {
        let whenExceeded: String
        let isStored: Bool
        /// What those get who find ten waiting: a stale page, the page of another fetch, or 503.
        let status: Int
        let body: String
        let fetches: Int
    }

    @Test(arguments: [
        Bound(whenExceeded: "503", isStored: false, status: 503, body: "", fetches: 1),
        Bound(whenExceeded: "503", isStored: true, status: 503, body: "", fetches: 2),
        Bound(whenExceeded: "stale", isStored: false, status: 503, body: "", fetches: 1),
        Bound(whenExceeded: "stale", isStored: true, status: 200, body: "old", fetches: 2),
        Bound(whenExceeded: "pass", isStored: false, status: 200, body: "next", fetches: 4),
        Bound(whenExceeded: "pass", isStored: true, status: 200, body: "next", fetches: 5),
    ])
    func `over the waiter limit, a request is treated as the operator says`(_ bound: Bound) throws {
        try scenario(.maxWaiters(10), .whenExceeded(bound.whenExceeded)) { origin, proxy in
            let (gate, next) = (Gate(), Gate())
            let first = bound.isStored ? 2 : 1
            origin.on("/x") { request in
                if request.number < first {
                    return [.answer(200, "Cache-Control: max-age=10", "Age: 20", "ETag: \"old\"", body: "old")]
                }
                if request.number == first {
                    return [.gate(gate), .answer(200, "Cache-Control: max-age=0", body: "shared")]
                }
                return [.gate(next), .answer(200, "Cache-Control: max-age=0", body: "next")]
            }
            if bound.isStored { try proxy.get("/x") }
            let leader = proxy.crowd(1, get: "/x")
            try eventually("the fetch is under way") { origin.count("/x") == first }
            let crowd = proxy.crowd(39, get: "/x")
            if bound.whenExceeded == "pass" { try proxy.joined(first + 39) }
            next.open()
            try eventually("who finds the fetch full has an answer") { crowd.pending == 9 }
            gate.open()
            let answers = leader.finished() + crowd.finished()
            #expect(answers.count { $0.status == 200 && $0.text == "shared" } == 10)
            let others = answers.count {
                $0.status == bound.status && (bound.status == 503 ? $0["retry-after"] != nil : $0.text == bound.body)
            }
            #expect(others == 30)
            #expect(origin.count("/x") == bound.fetches)
        }
    }
}
