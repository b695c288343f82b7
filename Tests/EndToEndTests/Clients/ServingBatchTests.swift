import Testing

/// Clients whose requests are found at the same time are read, answered and written to together: each gets its own.
@Suite(.scenario) struct ServingBatchTests {
    /// What one client does while the program is stopped, and what it gets.
    private enum Part: CaseIterable {
        case hit, pipelined, hitAndMiss, missAndHit, large, range, notModified, head, lastHit, half, malformed, leaves

        /// HTTP/2 has no words for the malformed one.
        static var sayable: [Part] { allCases.filter { $0 != .malformed || !Transport.current.isFramedToClients } }
    }

    @Test(
        .clientsInTheClear("they send while the program is stopped, which answers no handshake"),
        arguments: [true, false])
    func `many simultaneous clients get their own responses in order`(_ haveConnected: Bool) throws {
        try scenario(.workers(1), .accessLog) { origin, proxy in
            let all = Part.sayable
            let count = 12 * all.count
            var clients = haveConnected ? try (0..<count).map { _ in try proxy.connect() } : []
            let parts = (0..<count).map { all[$0 * 7 % all.count] }
            origin.on("*") { request in
                let (path, length) = (request.path, request.path.hasPrefix("/large") ? 300_000 : 100)
                return [
                    .answer(
                        200, path.hasPrefix("/pass") ? "Cache-Control: no-store" : "Cache-Control: max-age=600",
                        "ETag: \"\(path)\"", body: Self.body(path, length))
                ]
            }
            for index in 0..<count {
                try proxy.get("/a\(index)")
                if parts[index] == .large { try proxy.get("/large\(index)") }
            }
            func get(_ path: String, _ fields: String...) -> String { proxy.request("GET", path, fields) }
            func send(_ index: Int) throws {
                let path = "/a\(index)"
                let request =
                    switch parts[index] {
                    case .hit, .leaves: get(path)
                    case .pipelined: get(path) + get("/a0") + get(path)
                    case .hitAndMiss: get(path) + get("/pass\(index)")
                    case .missAndHit: get("/pass\(index)") + get(path)
                    case .large: get(path) + get("/large\(index)") + get(path)
                    case .range: get(path, "Range: bytes=10-19")
                    case .notModified: get(path, "If-None-Match: \"\(path)\"")
                    case .head: proxy.request("HEAD", path)
                    case .lastHit: get(path, "Connection: close")
                    case .half: get(path) + get(path).prefix(20)
                    case .malformed: get(path) + "GET  \(path) HTTP/1.1\r\n\r\n"
                    }
                try clients[index].send(request)
            }
            func check(_ index: Int) throws {
                let (client, path) = (clients[index], "/a\(index)")
                func answer() throws -> String { try client.answer().text }
                let whole = Self.body(path, 100)
                switch parts[index] {
                case .hit:
                    #expect(try answer() == whole)
                case .pipelined:
                    #expect(try answer() == whole)
                    #expect(try answer() == Self.body("/a0", 100))
                    #expect(try answer() == whole)
                case .hitAndMiss:
                    #expect(try answer() == whole)
                    #expect(try answer() == Self.body("/pass\(index)", 100))
                case .missAndHit:
                    #expect(try answer() == Self.body("/pass\(index)", 100))
                    #expect(try answer() == whole)
                case .large:
                    #expect(try answer() == whole)
                    #expect(try answer() == Self.body("/large\(index)", 300_000))
                    #expect(try answer() == whole)
                case .range:
                    #expect(try answer() == whole.dropFirst(10).prefix(10))
                case .notModified:
                    let answer = try client.answer()
                    #expect(answer.status == 304 && answer["etag"] == "\"\(path)\"")
                case .head:
                    let answer = try client.answer(to: "HEAD")
                    #expect(answer["etag"] == "\"\(path)\"" && answer["content-length"] == "100")
                case .lastHit:
                    #expect(try answer() == whole)
                    #expect(client.isClosed())
                case .half:
                    #expect(try answer() == whole)
                    try client.send(String(get(path).dropFirst(20)))
                    #expect(try answer() == whole)
                case .malformed:
                    #expect(try answer() == whole)
                    #expect(try client.answer().status == 400)
                    #expect(client.isClosed())
                case .leaves:
                    break
                }
            }
            try proxy.whileStopped {
                // The kernel goes on accepting for it.
                if !haveConnected { clients = try (0..<count).map { _ in try proxy.connect() } }
                for index in clients.indices { try send(index) }
                for index in clients.indices where parts[index] == .leaves { clients[index].reset() }
            }
            for index in clients.indices { try check(index) }
            // And once more on the same connections.
            let staying = clients.indices.filter { ![.lastHit, .malformed, .leaves].contains(parts[$0]) }
            try proxy.whileStopped { for index in staying { try send(index) } }
            for index in staying { try check(index) }
        }
    }

    @Test(.clientsInTheClear("it sends while the program is stopped, until the kernel takes no more"))
    func `a client that reads nothing delays no other, and gets everything later`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("*") { request in
                [.answer(200, "Cache-Control: max-age=600", body: Self.body(request.path, 2000))]
            }
            try proxy.get("/lazy")
            try proxy.get("/x")
            let (lazy, others) = (try proxy.connect(), try (0..<20).map { _ in try proxy.connect() })
            // More than both sockets' buffers take.
            let (each, times) = (100, 60)
            var sent = 0
            for _ in 0..<times {
                try proxy.whileStopped {
                    // Once the proxy reads no more of it, the kernel holds what it sends.
                    if sent < each * times {
                        try lazy.send(String(repeating: proxy.request("GET", "/lazy"), count: each))
                        sent += each
                    }
                    for client in others { try client.send(proxy.request("GET", "/x")) }
                }
                for client in others {
                    guard try client.answer().text == Self.body("/x", 2000) else {
                        throw Late(what: "x", place: "beside one who takes nothing")
                    }
                }
            }
            for _ in 0..<sent {
                guard try lazy.answer().text == Self.body("/lazy", 2000) else {
                    throw Late(what: "its own", place: "one who reads late")
                }
            }
        }
    }

    @Test func `hits between passes of one client leave no memory behind`() throws {
        try scenario(.workers(1)) { origin, proxy in
            origin.on("/hit") { _ in [.answer(200, "Cache-Control: max-age=600", body: Self.body("/hit", 2000))] }
            origin.on("/pass") { _ in [.answer(200, "Cache-Control: no-store", body: "pass")] }
            let client = try proxy.connect()
            let pair = proxy.request("GET", "/pass") + proxy.request("GET", "/hit")
            // There are always some to come: between two of its requests the client is never waited for.
            func ask(_ times: Int) throws {
                try client.send(String(repeating: pair, count: 50))
                for round in 1...times / 50 {
                    if round < times / 50 { try client.send(String(repeating: pair, count: 50)) }
                    for _ in 0..<50 {
                        guard try client.answer().text == "pass", try client.answer().text == Self.body("/hit", 2000)
                        else { throw Late(what: "its own", place: "hits between passes") }
                    }
                }
            }
            try proxy.get("/hit")
            try ask(1000)
            let before = proxy.residentBytes
            try ask(5000)
            #expect(proxy.residentBytes - before < 2 << 20)
        }
    }

    private static func body(_ path: String, _ length: Int) -> String {
        String(String(repeating: path + " ", count: length / (path.count + 1) + 1).prefix(length))
    }
}
