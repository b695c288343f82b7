import Testing

/// A slow reader costs a cursor, not a copy.
@Suite(.largeScenario) struct SlowReaderTests {
    @Test func `five hundred slow readers of ten megabytes stay within memory and slow no other client`() throws {
        try scenario(.memory(mebibytes: 64)) { origin, proxy in
            let length = 10_000_000
            origin.on("/big") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: length)] }
            let before = proxy.residentBytes
            let slow = proxy.crowd(500, get: "/big", pace: .slow(bytes: 2_048, every: .milliseconds(100)))
            try eventually("all of them read", within: .seconds(60)) { slow.answers.allSatisfy { $0.body.length > 0 } }

            let fast = proxy.crowd(1, get: "/big").finished()[0]
            #expect(fast.isWhole(length))
            #expect(slow.answers.allSatisfy { $0.ending == .pending && $0.body.isIntact })

            let growth = proxy.residentBytes - before
            note("memory for 500 slow readers of 10 MB, in MiB (64 set)", growth >> 20)
            #expect(growth < (64 + 48) << 20)
            #expect(origin.count("/big") == 1)
            slow.close()
            let alone = proxy.crowd(1, get: "/big").finished()[0]
            note(
                "10 MB for a fast client beside 500 slow ones, and alone", "\(fast.took.rounded), \(alone.took.rounded)"
            )
            #expect(fast.took < alone.took * 10 + aStall * 2)
        }
    }

    @Test func `stuck readers hold back an origin whose response is not stored`() throws {
        try scenario(.memory(mebibytes: 64)) { origin, proxy in
            let length = 50_000_000
            origin.on("/own") { _ in [.answer(200, "Cache-Control: no-store", pattern: length)] }
            let before = proxy.residentBytes
            let stuck = proxy.crowd(5, get: "/own", pace: .stuck)
            try stuck.gathered()
            try eventually("all are fetched") { origin.requests("/own").count { $0.sent > 0 } == 5 }
            try stays("memory is bounded", for: .milliseconds(500)) { proxy.residentBytes - before < (64 + 48) << 20 }
            #expect(origin.requests("/own").allSatisfy { $0.sent < length }, "the origin is held back")
        }
    }

    /// They ask for more than there is memory, each for a response of its own that may be stored.
    @Test func `stuck readers of stored responses neither empty the store nor stop new fetches`() throws {
        // Over HTTP/2 the kernel takes next to nothing of what is not read: so much memory that the windows of ten
        // responses fit into their reserve.
        let (memory, size) = Transport.current.isFramedToClients ? (64, 12 << 20) : (16, 2 << 20)
        // One shard, so that it is the queues that choose what is evicted.
        try scenario(.memory(mebibytes: memory), .other(section: "storage", key: "shards", value: "1")) {
            origin, proxy in
            let large = (0..<10).map { "/large/\($0)" }
            origin.on("/page") { _ in [.answer(200, "Cache-Control: max-age=60", body: "page")] }
            for target in large {
                origin.on(target) { _ in [.answer(200, "Cache-Control: max-age=60", pattern: size)] }
            }
            origin.on("*") { request in
                [
                    .answer(
                        200, "Cache-Control: \(request.target.hasPrefix("/kept") ? "max-age=60" : "no-store")",
                        pattern: 50_000)
                ]
            }
            // Used as often as to be worth more than what comes once.
            for _ in 0..<4 { try proxy.get("/page") }
            let stuck = large.map { proxy.crowd(1, get: $0, pace: .stuck) }
            try eventually("all are asked for, and hold as much as there is room for") {
                let asked = large.allSatisfy { (origin.requests($0).first?.sent ?? 0) > 0 }
                return try asked && proxy.metric(.storedBytes) + proxy.metric(.inFlightBytes) > (memory / 8 * 7) << 20
            }
            for number in 0..<40 {
                let (new, kept) = (try proxy.get("/new/\(number)"), try proxy.get("/kept/\(number)"))
                #expect(new.isWhole(50_000) && kept.isWhole(50_000), "\(new.cacheStatus) \(kept.cacheStatus)")
            }
            let (page, last) = (try proxy.get("/page"), try proxy.get("/kept/39"))
            #expect(page.cacheStatus.contains("hit") && last.cacheStatus.contains("hit"))
            for crowd in stuck { crowd.close() }
            try eventually("they are gone") { try proxy.metric(.inFlightBytes) == 0 }
            let whole = try proxy.get(large[9])
            #expect(whole.isWhole(size))
        }
    }

    /// Their responses are stored by the time they ask.
    @Test func `the bytes that readers hold of stored responses stay within memory`() throws {
        try scenario(.memory(mebibytes: 16)) { origin, proxy in
            origin.on("*") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: 2 << 20)] }
            try proxy.get("/first")
            let before = proxy.residentBytes
            var stuck: [Conversation] = []
            for number in 0..<60 {
                try proxy.get("/\(number)")
                let hit = try proxy.connect()
                try hit.send(proxy.request("GET", "/\(number)"))
                _ = try hit.bytes(64)
                stuck.append(hit)
            }
            let growth = proxy.residentBytes - before
            note("memory for 60 stuck readers of 2 MiB each, in MiB (16 set)", growth >> 20)
            #expect(growth < (16 + 32) << 20)
            for client in stuck { client.close() }
        }
    }

    @Test(arguments: ["max-age=60", "no-store"])
    func `a local client that does not read holds little of a large body in the kernel`(_ policy: String) throws {
        try scenario { origin, proxy in
            let length = 8_000_000
            origin.on("/big") { _ in [.answer(200, "Cache-Control: \(policy)", pattern: length)] }
            try proxy.get("/big")
            // The last write is counted after the client has it.
            try eventually("that one is counted") { try proxy.metric(.clientSentBytes) > length }
            let before = try proxy.metric(.clientSentBytes)
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/big"))
            try eventually("its answer has begun") { try proxy.metric(.clientSentBytes) > before }
            try stays("little is written", for: .milliseconds(300)) {
                try proxy.metric(.clientSentBytes) - before < 1 << 20
            }
            let answer = try client.answer()
            #expect(answer.isWhole(length))
        }
    }

    @Test(arguments: [4_096, 65_536] as [Int32])
    func `a client with a small receive buffer holds little of a large body in the kernel`(_ buffer: Int32) throws {
        try scenario { origin, proxy in
            let length = 8_000_000
            origin.on("/big") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: length)] }
            try proxy.get("/big")
            try eventually("that one is counted") { try proxy.metric(.clientSentBytes) > length }
            let before = try proxy.metric(.clientSentBytes)
            let client = try Socket.connect(to: proxy.endpoint, receiveBuffer: buffer)
            defer { Socket.close(client) }
            let request = Array((proxy.request("GET", "/big")).utf8)
            try eventually("it has asked") { Socket.write(client, request, from: 0) == .bytes(request.count) }
            try eventually("its answer has begun") { try proxy.metric(.clientSentBytes) > before }
            try stays("little is written", for: .milliseconds(300)) {
                try proxy.metric(.clientSentBytes) - before < 1 << 20
            }
        }
    }

    @Test(.overHTTP1("streams do not wait for one another"))
    func `a response that breaks off takes nothing from earlier ones that the client has not read`() throws {
        try scenario(.accessLog) { origin, proxy in
            let length = 150_000
            origin.on("/big") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: length)] }
            origin.on("/cut") { _ in [.head(200, "Content-Length: 10"), .text("half"), .close] }
            try proxy.get("/big")
            let client = try Socket.connect(to: proxy.endpoint, receiveBuffer: 4_096)
            defer { Socket.close(client) }
            let (requests, late) = (
                Array((proxy.request("GET", "/big") + proxy.request("GET", "/cut")).utf8),
                Array(proxy.request("GET", "/late").utf8)
            )
            try eventually("it has asked") { Socket.write(client, requests, from: 0) == .bytes(requests.count) }
            try eventually("the second is cut off") { try proxy.accessLog.count == 3 }
            // What comes for a socket that is closed already is answered by a reset, and the rest is lost.
            try eventually("it asks again") { Socket.write(client, late, from: 0) == .bytes(late.count) }
            var piece = [UInt8](repeating: 0, count: 65_536)
            var (taken, isReset) = (0, false)
            try eventually("it has all") {
                while true {
                    switch Socket.read(client, into: &piece) {
                    case .bytes(let count): taken += count
                    case .notNow: return false
                    case .ended, .cut: return true
                    case .failed:
                        isReset = true
                        return true
                    }
                }
            }
            #expect(taken > length && !isReset)
        }
    }

    @Test(.overHTTP1("its stream is cut off, and its connection stays"), arguments: ["max-age=60", "no-store"])
    func `a client that reads nothing for the timeout is cut off, and its memory is returned`(_ policy: String) throws {
        try scenario(.sendTimeout(.milliseconds(400))) { origin, proxy in
            let length = 50_000_000
            origin.on("/big") { _ in [.answer(200, "Cache-Control: \(policy)", pattern: length)] }
            let client = try proxy.connect()
            try client.send(proxy.request("GET", "/big"))
            try eventually("it is cut") { try proxy.metric(.openClients) == 0 && proxy.metric(.clientSentBytes) > 0 }
            let answer = try client.answer()
            #expect(
                answer.head?.status == 200 && !answer.isClean && answer.body.isIntact && answer.body.length < length)
            try eventually("its fetch is over") { try proxy.metric(.inFlight) == 0 }
        }
    }

    /// With a small buffer: a large one opens its window in steps that take this client longer than the time set.
    @Test(.overHTTP1("another's stream is cut off, and its connection stays"))
    func `a client that reads a little now and then is not cut off`() throws {
        try scenario(.sendTimeout(.seconds(2))) { origin, proxy in
            origin.on("/big") { _ in [.answer(200, "Cache-Control: max-age=60", pattern: 30_000_000)] }
            origin.on("/other") { _ in [.answer(200, "Cache-Control: no-store", pattern: 30_000_000)] }
            let client = try Socket.connect(to: proxy.endpoint, receiveBuffer: 65_536)
            defer { Socket.close(client) }
            let request = Array(proxy.request("GET", "/big").utf8)
            try eventually("it has asked") { Socket.write(client, request, from: 0) == .bytes(request.count) }
            var piece = [UInt8](repeating: 0, count: 65_536)
            var taken = 0
            func takeLittle() throws {
                // The pace of this client.
                System.nap(.milliseconds(100))
                switch Socket.read(client, into: &piece) {
                case .bytes(let count): taken += count
                case .notNow: break
                case .ended, .cut, .failed: throw Broken(what: "it is served", place: #function)
                }
            }
            // One after another: that is twice the time set.
            for _ in 0..<2 {
                let stuck = proxy.crowd(1, get: "/other", pace: .stuck)
                try eventually("another asks, too") { try proxy.metric(.openClients) == 2 }
                try eventually("that one takes nothing, and is cut off", within: .seconds(30)) {
                    try takeLittle()
                    return try proxy.metric(.openClients) == 1
                }
                stuck.close()
            }
            let before = taken
            try eventually("it is still served") {
                try takeLittle()
                return taken > before
            }
            #expect(taken > 300_000 && taken < 30_000_000)
            #expect(try proxy.metric(.openClients) == 1)
        }
    }

    /// What the kernel holds of it, on both sides, is less than the difference.
    @Test(arguments: [(window: "128KiB", isWide: false), ("48MiB", true)])
    func `the window between an origin and its reader is the configured one`(
        _ setting: (window: String, isWide: Bool)
    ) throws {
        try scenario(.other(section: "storage", key: "streaming-window", value: setting.window)) { origin, proxy in
            origin.on("/own") { _ in [.answer(200, "Cache-Control: no-store", pattern: 64_000_000)] }
            let stuck = proxy.crowd(1, get: "/own", pace: .stuck)
            try stuck.gathered()
            try eventually("it is fetched") { (origin.requests("/own").first?.sent ?? 0) > 0 }
            let isFarAhead = { origin.requests("/own")[0].sent > 40_000_000 }
            if setting.isWide {
                try eventually("the origin is far ahead", isFarAhead)
            } else {
                try stays("the origin is held back", for: .milliseconds(500)) { !isFarAhead() }
            }
            stuck.close()
        }
    }

    /// Of so many lengths, some end with the very piece that fills the window.
    @Test func `a response whose end arrives while its reader holds it back ends when the reader goes on`() throws {
        try scenario { origin, proxy in
            let lengths = Array(stride(from: 300_000, through: 6_300_000, by: 60_000))
            let clients = try lengths.map { length in
                origin.on("/\(length)") { _ in [.answer(200, "Cache-Control: no-store", pattern: length)] }
                let client = try proxy.connect()
                try client.send(proxy.request("GET", "/\(length)"))
                return client
            }
            try eventually("each waits for its reader, or is done") { try proxy.metric(.fetches) == lengths.count }
            for (client, length) in zip(clients, lengths) { #expect(try client.answer().isWhole(length)) }
            try eventually("all fetches are over") { try proxy.metric(.inFlight) == 0 }
        }
    }

    /// The same, and meanwhile the origin sends what nobody asked for, or leaves.
    @Test(arguments: [false, true])
    func `the origin's behaviour while its response is held back affects no later request`(_ leaves: Bool) throws {
        try scenario { origin, proxy in
            // None so short that it is done before all have asked: its connection would serve another.
            let lengths = Array(stride(from: 1_200_000, through: 4_800_000, by: 60_000))
            let (gate, done) = (Gate(), Gate())
            let stray = "HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 5\r\n\r\nstray"
            origin.on("/good") { _ in
                [.answer(200, "Cache-Control: no-store", "Connection: close", body: "asked"), .close]
            }
            let clients = try lengths.map { length in
                origin.on("/\(length)") { _ in
                    [
                        .head(200, "Cache-Control: no-store", "Content-Length: \(length)"), .pattern(0..<length),
                        .gate(gate),
                        leaves ? .close : .bytes(Array(stray.utf8)), .gate(done),
                    ]
                }
                let client = try proxy.connect()
                try client.send(proxy.request("GET", "/\(length)"))
                return client
            }
            defer { done.open() }
            try eventually("each waits for its reader, or is done") { try proxy.metric(.fetches) == lengths.count }
            gate.open()
            // What the others' connections see, which are idle, they see at once.
            try eventually("only those whose readers wait are left") {
                try proxy.metric(.openUpstreams) == proxy.metric(.inFlight)
            }
            for (client, length) in zip(clients, lengths) {
                #expect(try client.answer().isWhole(length))
                // The origin may do it a moment later: then its connection is idle, and must be seen to be of no use.
                try eventually("its connection is given up") {
                    try proxy.metric(.openUpstreams) == proxy.metric(.inFlight)
                }
                let upload = try proxy.connect()
                try upload.send("POST /good HTTP/1.1\r\nHost: origin\r\nContent-Length: 2\r\n\r\nhi")
                #expect(try upload.answer().text == "asked")
            }
        }
    }
}
